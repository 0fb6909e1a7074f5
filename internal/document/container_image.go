package document

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ContainerImage is the container image in which the tasks of a job run.
type ContainerImage struct {
	Name       string   `json:"name"` // as the user wrote it
	Digest     string   `json:"digest"`
	Size       int64    `json:"size_bytes,omitempty"` // 0: unknown
	Writable   bool     `json:"writable"`             // a task may change its files, for itself
	Workdir    string   `json:"workdir,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"` // what runs before the program
	Mounts     []string `json:"mounts,omitempty"`     // SOURCE:TARGET[:ro]
}

// ContainerImageOf returns what the ad of a job says of its container image. It is nil
// for a job without one.
func ContainerImageOf(adText string) *ContainerImage {
	ad, err := classad.Parse(adText)
	if err != nil || adText == "" {
		return nil
	}
	c := &ContainerImage{}
	c.Name, _ = ad.Str(roost.AttrContainerImage)
	if c.Digest, _ = ad.Str(roost.AttrContainerDigest); c.Digest == "" {
		return nil
	}
	c.Size, _ = ad.Int(roost.AttrContainerSize)
	c.Writable, _ = ad.Bool(roost.AttrContainerWritable)
	c.Workdir, _ = ad.Str(roost.AttrContainerWorkdir)
	c.Entrypoint, _ = ad.Strings(roost.AttrContainerEntrypoint)
	c.Mounts, _ = ad.Strings(roost.AttrContainerMounts)
	return c
}

// Text describes it in a line.
func (c *ContainerImage) Text() string {
	text := c.Name
	if c.Name != c.Digest {
		text += fmt.Sprintf(", pinned to %.12s", strings.TrimPrefix(c.Digest, "sha256:"))
	}
	if c.Size > 0 {
		text += fmt.Sprintf(" (%v)", roost.Bytes(c.Size))
	}
	if c.Writable {
		text += ", writable"
	}
	return PrintableText(text)
}
