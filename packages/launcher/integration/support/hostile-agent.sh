#!/bin/sh
# A guest agent that means harm, run in the guest. Usage: hostile-agent.sh PORT HOW.
exec 3<>"$1"
sleep 1 # the host opens its end when it sees this one open

answer() { # to what is asked beside guest-sync
  case $1 in
    silent) ;;
    broken) echo '{"return": {' >&3 ;;
    wrong) echo '{"return": [1, {"name": [], "login-time": "x"}, null, "y"]}' >&3 ;;
    huge) { printf '{"return":"'; head -c 9000000 /dev/zero | tr '\0' a; echo '"}'; } >&3 ;;
    many) { printf '{"return":['; yes '{"name":"x","mountpoint":"/","type":"t","disk":[]},' | head -n 60000; echo '{}]}'; } >&3 ;;
    deep) { head -c 200000 /dev/zero | tr '\0' '['; echo; } >&3 ;;
    slow) sleep 20; echo '{"return":{}}' >&3 ;;
  esac
}

case $2 in
  mute) while :; do cat <&3 >/dev/null; sleep 1; done ;;
  noise) cat /dev/urandom >&3 ;;
  line) tr '\0' a </dev/zero >&3 ;;
  flap) while :; do exec 3>&-; exec 3<>"$1"; done ;;
  flood) yes '{"return":{}}' >&3 ;;
esac
while :; do # the end of the file comes while the host's end is closed
  while read -r asked <&3; do
    case $asked in
      *guest-sync*) id=${asked##*:}; echo "{\"return\":${id%%\}*}}" >&3 ;;
      *) answer "$2" ;;
    esac
  done
  sleep 1
done
