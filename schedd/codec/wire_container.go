package codec

import (
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// WireContainer returns the container image of a task for its machine; nil for none.
func WireContainer(c *jobad.ContainerSpec) *wire.Container {
	if c == nil {
		return nil
	}
	w := &wire.Container{Digest: c.Digest, Size: c.Size, Reference: c.Image, Entrypoint: c.Entrypoint,
		Command: c.Command, Workdir: c.Workdir, User: c.User, Writable: c.Writable}
	for _, e := range c.Environment {
		w.Environment = append(w.Environment, []byte(e))
	}
	for _, m := range c.Mounts {
		w.Mounts = append(w.Mounts, &wire.ContainerMount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return w
}

// WirePackages returns the packages of a task for its machine.
func WirePackages(list []jobad.PackageSpec) (w []*wire.PackageMount) {
	for _, p := range list {
		w = append(w, &wire.PackageMount{Digest: p.Digest, Size: p.Size, Reference: p.Reference, Target: p.Target})
	}
	return w
}
