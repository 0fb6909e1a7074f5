package criu

import (
	"os"
	"slices"
	"strings"
)

// outer lists the mounts of a process that CRIU cannot make by itself: all but the root and the small file systems that belong to the
// namespaces, which it makes anew with their contents.
func outer(pid int) ([]Mount, error) {
	text, err := os.ReadFile(proc(pid, "mountinfo"))
	if err != nil {
		return nil, err
	}
	var list []Mount
	for line := range strings.Lines(string(text)) {
		at, source, fs := parseMount(line)
		made := fs == "proc" && source == "/" || fs == "mqueue" || fs == "devpts" || fs == "tmpfs" && source == "/" && at == "/dev/shm"
		if at != "" && at != "/" && !made && !slices.ContainsFunc(list, func(m Mount) bool { return m.Inside == at }) {
			list = append(list, Mount{Inside: at})
		}
	}
	return list, nil
}

// parseMount takes mount point, root within the file system and its type from a line of a mountinfo file (proc(5)).
func parseMount(line string) (at, source, fs string) {
	left, right, ok := strings.Cut(line, " - ")
	fields, types := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 6 || len(types) < 1 {
		return "", "", ""
	}
	undo := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	return undo.Replace(fields[4]), undo.Replace(fields[3]), types[0]
}

// key names a mount in an image. CRIU's syntax has no room for some characters.
func (m Mount) key() string {
	if m.Key != "" {
		return m.Key
	}
	return strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || r == ':' {
			return '_'
		}
		return r
	}, m.Inside)
}
