package imageref

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost"
)

// Mount shows a directory or file of the machine in a container.
type Mount struct {
	Source   string // of the machine
	Target   string // in the container
	ReadOnly bool
}

// String returns the mount as ParseMount reads it.
func (m Mount) String() string {
	if m.ReadOnly {
		return m.Source + ":" + m.Target + ":ro"
	}
	return m.Source + ":" + m.Target
}

// mountForms is what a wrong mount is answered with.
const mountForms = `write "/directory", "/directory:/in/the/image", or either with ":ro" at its end`

// ParseMount reads SOURCE[:TARGET][:ro]. Without a target it is the source.
func ParseMount(text string) (m Mount, err error) {
	words := strings.Split(text, ":")
	if n := len(words); n > 1 && (words[n-1] == "ro" || words[n-1] == "rw") {
		m.ReadOnly, words = words[n-1] == "ro", words[:n-1]
	}
	switch len(words) {
	case 1:
		m.Source, m.Target = words[0], words[0]
	case 2:
		m.Source, m.Target = words[0], words[1]
	default:
		return m, fmt.Errorf("mount %.300q: %w: %s", text, roost.Invalid, mountForms)
	}
	for _, p := range []string{m.Source, m.Target} {
		if !path.IsAbs(p) || path.Clean(p) != "/"+strings.Trim(p, "/") || strings.ContainsAny(p, "\x00\n") ||
			len(p) > 4000 {
			return m, fmt.Errorf("mount %.300q: %w: %.300q is no absolute path without \"..\": %s", text,
				roost.Invalid, p, mountForms)
		}
	}
	m.Source, m.Target = path.Clean(m.Source), path.Clean(m.Target)
	if m.Target == "/" {
		return m, fmt.Errorf("mount %.300q: %w: the image is there; name a directory in it", text, roost.Invalid)
	}
	for _, taken := range []string{"/proc", "/sys", "/dev", "/run/secrets"} {
		if m.Target == taken || strings.HasPrefix(m.Target, taken+"/") {
			return m, fmt.Errorf("mount %.300q: %w: nothing can be mounted over %s of a sandbox", text, roost.Invalid,
				taken)
		}
	}
	return m, nil
}
