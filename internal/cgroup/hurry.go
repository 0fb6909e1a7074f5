package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hurryAll lets what lies below the parents of those directories have processor time like others, as Host.Hurry does for who has made them, until the
// function that it returns is called. A process comes to rest when it is next to run: on a machine that is busy with its owner's work one that is
// behind everything else would be told to, and not do it for seconds.
func hurryAll(dirs []TaskDir) (back func()) {
	var raised []string
	for _, file := range idleFiles(dirs) {
		if text, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(text)) != "1" {
			continue
		}
		if write(file, []byte("0")) == nil {
			raised = append(raised, file)
		}
	}
	return func() {
		for _, file := range raised {
			write(file, []byte("1"))
		}
	}
}

// idleFiles lists where it stands, for each directory above those, that its processes come after all others. In version 1 that is in another hierarchy.
func idleFiles(dirs []TaskDir) (files []string) {
	m := find()
	seen := map[string]bool{}
	for _, d := range dirs {
		for at := filepath.Dir(string(d)); !seen[at] && len(at) > 1 && at != m.v2; at = filepath.Dir(at) {
			seen[at] = true
			files = append(files, filepath.Join(at, "cpu.idle"))
			if m.v1 == "" {
				continue
			}
			for _, root := range []string{m.v2, filepath.Join(m.v1, "freezer")} {
				if below, inside := strings.CutPrefix(at, root+"/"); inside && root != "" {
					files = append(files, filepath.Join(m.v1, "cpu", below, "cpu.idle"))
				}
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}
