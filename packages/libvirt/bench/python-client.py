"""The same calls through python3-libvirt. Reads lines `CASE COUNT`, answers with the seconds that they took."""

import sys
import time

import libvirt

STATS_SOME = libvirt.VIR_DOMAIN_STATS_STATE | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL | libvirt.VIR_DOMAIN_STATS_VCPU


def main(uri, name):
    connection = libvirt.open(uri)
    domain = connection.lookupByName(name)
    cases = {
        "libVersion": connection.getLibVersion,
        "domainInfo": domain.info,
        "domainXml": lambda: domain.XMLDesc(0),
        "someStats": lambda: connection.getAllDomainStats(STATS_SOME, 0),
        "allStats": lambda: connection.getAllDomainStats(0, 0),
    }
    for line in sys.stdin:
        case, count = line.split()
        call = cases[case]
        started = time.perf_counter()
        for _ in range(int(count)):
            call()
        print(time.perf_counter() - started, flush=True)


main(sys.argv[1], sys.argv[2])
