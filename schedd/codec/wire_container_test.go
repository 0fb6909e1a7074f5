package codec

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestWireContainer holds each field of a container image on its way to the machine.
func TestWireContainer(t *testing.T) {
	if WireContainer(nil) != nil {
		t.Error("a task without an image has one")
	}
	got := WireContainer(&jobad.ContainerSpec{Image: "x@y", Digest: "sha256:00", Size: 7,
		Environment: []string{"A=\xff"}, Entrypoint: []string{"/e"}, Command: []string{"c"},
		Workdir: "/w", User: "u", Writable: true,
		Mounts: []imageref.Mount{{Source: "/s", Target: "/t", ReadOnly: true}}})
	want := &wire.Container{Digest: "sha256:00", Size: 7, Reference: "x@y", Environment: [][]byte{[]byte("A=\xff")},
		Entrypoint: []string{"/e"}, Command: []string{"c"}, Workdir: "/w", User: "u", Writable: true,
		Mounts: []*wire.ContainerMount{{Source: "/s", Target: "/t", ReadOnly: true}}}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
