// Prints the tables of packages/launcher/src/hooks/cel/gen: the Go types that expressions of plugins see.
//
//	go mod init cel-types
//	go get libvirt.org/go/libvirtxml@v1.12008.0 kubevirt.io/api@v1.9.0
//	go run . domain > libvirt-types.gen.ts
//	go run . vmi > vmi-types.gen.ts
//
// The comments at the top of the files are kept by hand.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

var names = map[reflect.Type]string{}
var used = map[string]reflect.Type{}

func nameOf(t reflect.Type) string {
	if n, ok := names[t]; ok {
		return n
	}
	n := t.String()
	n = strings.TrimPrefix(n, "libvirtxml.")
	for i := 2; ; i++ {
		if used[n] == nil {
			break
		}
		fmt.Fprintln(os.Stderr, "collision", n, t.PkgPath(), used[n].PkgPath())
		n = fmt.Sprintf("%s#%d", t.String(), i)
	}
	names[t] = n
	used[n] = t
	return n
}

func typ(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + typ(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + typ(t.Elem())
	case reflect.Map:
		return "{}" + typ(t.Elem())
	case reflect.Struct:
		if t.String() == "time.Time" {
			return "timestamp"
		}
		return nameOf(t)
	default:
		return t.Kind().String()
	}
}

func walk(t reflect.Type, seen map[reflect.Type]bool, list *[]reflect.Type) {
	for t.Kind() == reflect.Ptr || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || t.String() == "time.Time" || t.String() == "xml.Name" {
		return
	}
	seen[t] = true
	nameOf(t)
	*list = append(*list, t)
	for i := 0; i < t.NumField(); i++ {
		if t.Field(i).IsExported() {
			walk(t.Field(i).Type, seen, list)
		}
	}
}

// Where libvirtxml writes fields whose tags do not say so.
var places = map[string]string{
	"DomainControllerPCITarget.ChassisNr":  "@chassisNr",
	"DomainControllerPCITarget.Chassis":    "@chassis",
	"DomainControllerPCITarget.Port":       "@port",
	"DomainControllerPCITarget.BusNr":      "@busNr",
	"DomainControllerPCITarget.Index":      "@index",
	"DomainControllerPCITarget.NUMANode":   "node",
	"DomainControllerPCITarget.Hotplug":    "@hotplug?",
	"DomainControllerPCITarget.MemReserve": "@memReserve",
	"DomainDiskSourceNVME.PCI":             "-",
	"DomainLaunchSecuritySEV.DHCert":       "dhCert?",
	"DomainLaunchSecuritySEV.Session":      "session?",
	"DomainAudio.ID":                       "@id?",
	"Domain.QEMUCommandline":               "qemu:commandline",
	"Domain.QEMUCapabilities":              "qemu:capabilities",
	"Domain.QEMUOverride":                  "qemu:override",
	"Domain.QEMUDeprecation":               "qemu:deprecation",
	"Domain.LXCNamespace":                  "lxc:namespace",
	"Domain.BHyveCommandline":              "bhyve:commandline",
	"Domain.VMWareDataCenterPath":          "vmware:datacenterpath",
	"Domain.XenCommandline":                "xen:commandline",
}

func place(tag string, f reflect.StructField, owner reflect.Type) string {
	parts := strings.Split(tag, ",")
	omit, kind := "", ""
	for _, p := range parts[1:] {
		switch p {
		case "omitempty":
			omit = "?"
		case "":
		default:
			kind = p
		}
	}
	switch {
	case places[nameOf(owner)+"."+f.Name] != "":
		return places[nameOf(owner)+"."+f.Name]
	case tag == "-":
		return "-"
	case tag == "" && strings.HasPrefix(nameOf(owner), "DomainAddress"):
		return "-"
	case kind == "attr":
		n := parts[0]
		if n == "" {
			n = f.Name
		}
		return "@" + n + omit
	case kind == "chardata":
		return "text()"
	case kind == "innerxml":
		return "xml()"
	case kind == "inline":
		return "&"
	case kind == "cdata":
		return "text()"
	case f.Anonymous:
		return "&" + parts[0]
	case tag == "":
		return f.Name
	}
	return parts[0] + omit
}

func emit(root reflect.Type, key, name string) {
	list := []reflect.Type{}
	walk(root, map[reflect.Type]bool{}, &list)
	sort.Slice(list, func(i, j int) bool { return nameOf(list[i]) < nameOf(list[j]) })
	fmt.Printf("export const %s: Readonly<Record<string, string>> = {\n", name)
	for _, t := range list {
		rows := []string{}
		for i := 0; i < t.NumField(); i++ {
			f := t.Field(i)
			if f.Name == "XMLName" || !f.IsExported() {
				continue
			}
			rows = append(rows, fmt.Sprintf("%s %s %s", f.Name, typ(f.Type), place(f.Tag.Get(key), f, t)))
		}
		k := nameOf(t)
		if strings.ContainsAny(k, ".#") {
			k = "'" + k + "'"
		}
		if len(rows) == 0 {
			fmt.Printf("  %s: '',\n", k)
			continue
		}
		fmt.Printf("  %s: `\n    %s`,\n", k, strings.Join(rows, "\n    "))
	}
	fmt.Println("};")
}

func main() {
	if os.Args[1] == "domain" {
		emit(reflect.TypeOf(libvirtxml.Domain{}), "xml", "LIBVIRT_TYPES")
	} else {
		emit(reflect.TypeOf(v1.VirtualMachineInstance{}), "json", "VMI_TYPES")
	}
}
