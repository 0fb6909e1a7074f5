package main

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed conf
var confFiles embed.FS

// configText concatenates configuration files.
func configText(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		text, err := confFiles.ReadFile("conf/" + name)
		if err != nil {
			panic(err) // the names are constants of this program
		}
		all.Write(text)
	}
	return all.String()
}

// machineGroups returns how many of the machines have each of six sizes, for matching.
// The last size gets the rest.
func machineGroups(machines int) (count [6]int) {
	for i := range count {
		count[i] = machines / 6
	}
	count[5] += machines % 6
	return count
}

// memorySizes lists the memory of a machine of each size, in MiB.
var memorySizes = [6]int{2048, 4096, 8192, 16384, 32768, 65536}

// memoryOfKind returns the memory request of the jobs of a kind, in MiB.
func memoryOfKind(kind int) int { return 100 + kind }

// hostsFile returns the /etc/hosts of the namespaces. It has this host, and the machines
// that Grid Engine must be able to resolve.
func (p namespaceConfig) hostsFile() string {
	var text strings.Builder
	fmt.Fprintf(&text, "127.0.0.1 localhost\n%s %s\n", hostAddress, hostName)
	for i := range p.Cell {
		fmt.Fprintf(&text, "10.98.%d.%d m%05d\n", i>>8, i&255, i)
	}
	return text.String()
}
