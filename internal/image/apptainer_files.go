package image

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The files in an image of Apptainer that say how its programs run.
const (
	apptainerEnvDir    = ".singularity.d/env/"
	apptainerRunscript = ".singularity.d/runscript"
	maxApptainerFile   = 256 << 10 // bytes; a longer one is not read
	maxApptainerFiles  = 256
)

// apptainerFiles has the files of an image that Apptainer reads.
type apptainerFiles struct {
	scripts   map[string]*bytes.Buffer // of the environment, by their paths
	runscript bool
}

func newApptainerFiles() *apptainerFiles {
	return &apptainerFiles{scripts: map[string]*bytes.Buffer{}}
}

// watch returns a reader of a file's contents. What is read of a file that Apptainer
// reads is noted.
func (a *apptainerFiles) watch(path string, size int64, contents io.Reader) io.Reader {
	if path == apptainerRunscript {
		a.runscript = true
	}
	name, ok := strings.CutPrefix(path, apptainerEnvDir)
	if !ok || strings.Contains(name, "/") || !strings.HasSuffix(name, ".sh") || size > maxApptainerFile ||
		len(a.scripts) >= maxApptainerFiles {
		return contents
	}
	b := &bytes.Buffer{}
	a.scripts[path] = b
	return io.TeeReader(contents, b)
}

// config returns the environment and the entry point of the image's programs. Scripts
// are read as far as they are plain assignments, and the notes say what was not.
func (a *apptainerFiles) config() (c Config, notes []string) {
	e := &exportScript{variables: map[string]string{"PATH": apptainerPath}, exported: map[string]bool{}}
	var unread partList
	for _, path := range slices.Sorted(maps.Keys(a.scripts)) { // the order in which Apptainer does
		for line := range strings.Lines(a.scripts[path].String()) {
			if !e.run(strings.TrimRight(line, "\r\n")) && !apptainerOwn(path) {
				unread.add(fmt.Sprintf("%s: %s", path, strings.TrimSpace(line)))
			}
		}
		e.depth = 0
	}
	for _, name := range slices.Sorted(maps.Keys(e.exported)) {
		if value, set := e.variables[name]; set {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	if a.runscript {
		c.Entrypoint = []string{"/" + apptainerRunscript}
	}
	if unread.count > 0 {
		notes = append(notes, fmt.Sprintf("%d lines of the environment's scripts do more than export plain values and "+
			"are not followed; the first is %.300q", unread.count, unread.first))
	}
	return c, notes
}

// apptainerPath is where Apptainer looks for programs, unless an image says otherwise.
const apptainerPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// apptainerOwn reports whether Apptainer wrote a script itself, for its own variables.
func apptainerOwn(path string) bool {
	for _, name := range []string{"01-base.sh", "90-environment.sh", "94-appsbase.sh", "95-apps.sh", "99-base.sh",
		"99-runtimevars.sh"} {
		if path == apptainerEnvDir+name {
			return name != "90-environment.sh"
		}
	}
	return false
}
