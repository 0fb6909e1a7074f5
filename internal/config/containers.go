package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
)

// ContainerSettings are the settings of a startd for tasks in container images.
type ContainerSettings struct {
	// directories of the machine that tasks may have in their containers, with ":ro"
	// behind those that they may only read
	Mounts []string
	NoHome bool        // containers do not have their user's home directory
	Max    roost.Bytes // the most bytes of all images; 0: what the disk has room for

	// bytes that other machines may fetch in a second; 0: half of the fastest link
	Upload   roost.Bytes
	NoUpload bool // other machines fetch nothing from this one
}

// MaxContainerMounts bounds the directories that a startd lets containers have.
const MaxContainerMounts = 32

// readOnlySuffix follows a directory that is only read.
const readOnlySuffix = ":ro"

// SplitContainerMount cuts a directory of ContainerSettings.Mounts in its path and
// whether it is only read.
func SplitContainerMount(text string) (path string, readOnly bool) {
	return strings.CutSuffix(text, readOnlySuffix)
}

func (s *blockReader) readContainers(to *ContainerSettings) {
	b := s.singleBlock("containers")
	if b == nil {
		return
	}
	c := s.innerBlock(b)
	c.readList("mounts", `["/data", "/software:ro"]`, &to.Mounts, func(text string, at hcl.Range) {
		path, _ := SplitContainerMount(text)
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" ||
			strings.Contains(path, ":") {
			c.addProblem(at, `write an absolute path other than "/", with ":ro" behind it if tasks may only read there`,
				"%q is no directory for containers", text)
		}
	})
	if len(to.Mounts) > MaxContainerMounts {
		c.addProblem(b.TypeRange, "name a directory above them", "containers has %d mounts, at most %d are allowed",
			len(to.Mounts), MaxContainerMounts)
	}
	slices.Sort(to.Mounts)
	c.readBool("no_home", &to.NoHome)
	c.readSize("max_size", `"50GiB"`, &to.Max)
	c.readSize("upload", `"100MiB"`, &to.Upload)
	c.readBool("no_upload", &to.NoUpload)
	c.reportUnknown()
}

func (w fileWriter) writeContainers(c ContainerSettings) {
	if len(c.Mounts) == 0 && !c.NoHome && c.Max == 0 && c.Upload == 0 && !c.NoUpload {
		return
	}
	b := w.writeBlock("containers")
	b.writeList("mounts", c.Mounts)
	b.writeBool("no_home", c.NoHome)
	b.writeSize("max_size", c.Max)
	b.writeSize("upload", c.Upload)
	b.writeBool("no_upload", c.NoUpload)
}
