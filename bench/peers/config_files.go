package main

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed conf
var confFiles embed.FS

// configText joins files of settings.
func configText(names ...string) string {
	var all strings.Builder
	for _, name := range names {
		text, err := confFiles.ReadFile("conf/" + name)
		if err != nil {
			panic(err) // the name stands in this program
		}
		all.Write(text)
	}
	return all.String()
}

// machineGroups is how many machines of each of six sizes there are among so many, for
// matching; the last takes the rest.
func machineGroups(machines int) (count [6]int) {
	for i := range count {
		count[i] = machines / 6
	}
	count[5] += machines % 6
	return count
}

// memorySizes is what a machine of each size has, in MiB.
var memorySizes = [6]int{2048, 4096, 8192, 16384, 32768, 65536}

// memoryOfKind is what the jobs of a kind ask for, in MiB.
func memoryOfKind(kind int) int { return 100 + kind }

// hostsFile is the /etc/hosts of the namespaces: besides ourselves, those that Grid
// Engine is to believe in.
func (p namespaceConfig) hostsFile() string {
	var text strings.Builder
	fmt.Fprintf(&text, "127.0.0.1 localhost\n%s %s\n", hostAddress, hostName)
	for i := range p.Cell {
		fmt.Fprintf(&text, "10.98.%d.%d m%05d\n", i>>8, i&255, i)
	}
	return text.String()
}
