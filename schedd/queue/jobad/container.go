package jobad

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// ContainerSpec is the container image in which the tasks of a job run.
type ContainerSpec struct {
	Image       string // what the user named
	Digest      string // of the EROFS file; empty: the submission has not found out
	Size        int64  // bytes of that file
	Environment []string
	Entrypoint  []string // runs before the program; none: the program runs alone
	Command     []string
	Workdir     string
	User        string
	Writable    bool
	Mounts      []imageref.Mount
}

// maxContainerWords bounds the lists that an image brings.
const maxContainerWords = 4096

// container reads the container image of a job's ad.
func (r *adReader) container() *ContainerSpec {
	if !r.has(roost.AttrContainerImage) {
		for _, name := range []string{roost.AttrContainerDigest, roost.AttrContainerMounts,
			roost.AttrContainerWritable} {
			if r.has(name) {
				r.fail(name, "the job has no "+roost.AttrContainerImage)
			}
		}
		return nil
	}
	c := &ContainerSpec{Image: r.text(roost.AttrContainerImage, ""), Digest: r.text(roost.AttrContainerDigest, ""),
		Size: r.number(roost.AttrContainerSize, 0, 0, math.MaxInt64), Workdir: r.text(roost.AttrContainerWorkdir, ""),
		User: r.text(roost.AttrContainerUser, ""), Writable: r.boolean(roost.AttrContainerWritable, false)}
	c.Environment, c.Entrypoint = r.words(roost.AttrContainerEnvironment), r.words(roost.AttrContainerEntrypoint)
	c.Command = r.words(roost.AttrContainerCommand)
	r.checkContainer(c)
	return c
}

// checkContainer checks what the image brings, and reads its mounts.
func (r *adReader) checkContainer(c *ContainerSpec) {
	if c.Digest != "" && !imageref.ValidDigest(c.Digest) {
		r.fail(roost.AttrContainerDigest, fmt.Sprintf("%.80q is no digest", c.Digest))
	}
	if c.Workdir != "" && !path.IsAbs(c.Workdir) {
		r.fail(roost.AttrContainerWorkdir, "an absolute path is wanted")
	}
	for _, e := range c.Environment {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.ContainsRune(e, 0) {
			r.fail(roost.AttrContainerEnvironment, fmt.Sprintf("%.80q is not NAME=value", e))
		}
	}
	for _, text := range r.list(roost.AttrContainerMounts) {
		m, err := imageref.ParseMount(text)
		if err != nil {
			r.fail(roost.AttrContainerMounts, err.Error())
		}
		c.Mounts = append(c.Mounts, m)
	}
}

// ContentDigests lists the digests of the image and of the packages of a job. It prefers
// the machines that have them.
func (p *JobSpec) ContentDigests() (list []string) {
	if p.Container != nil && p.Container.Digest != "" {
		list = append(list, p.Container.Digest)
	}
	for _, m := range p.PackageMounts {
		if m.Digest != "" && !slices.Contains(list, m.Digest) {
			list = append(list, m.Digest)
		}
	}
	return list
}

// maxPackages is how many packages a request may name (package negotiator/match).
const maxPackages = 64

// words reads a list of texts, which an image may have many of.
func (r *adReader) words(name string) []string {
	if !r.has(name) {
		return nil
	}
	list, ok := r.ad.Strings(name)
	if !ok || len(list) > maxContainerWords {
		r.fail(name, fmt.Sprintf("a list of at most %d strings is wanted", maxContainerWords))
	}
	return list
}

// containerKey tells the requests of tasks with container images or packages apart, which
// not every machine can run.
func (p *JobSpec) containerKey() string {
	if p.Container == nil && len(p.PackageMounts) == 0 {
		return ""
	}
	return " container "
}
