package document

import (
	"strings"
	"testing"
)

func TestContainerImage(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	c := ContainerImageOf(`[ContainerImage = "oci:lay:v1"; ContainerImageDigest = "` + digest +
		`"; ContainerImageSize = 3145728; ContainerImageWritable = true; ContainerMounts = {"/data:/data:ro"}]`)
	if c == nil || c.Text() != "oci:lay:v1, pinned to 0a0a0a0a0a0a (3MiB), writable" || len(c.Mounts) != 1 {
		t.Errorf("got %+v", c)
	}
	c = ContainerImageOf(`[ContainerImage = "` + digest + `"; ContainerImageDigest = "` + digest + `"]`)
	if c == nil || c.Text() != digest {
		t.Errorf("got %+v", c)
	}
	for _, ad := range []string{"", "[Owner = \"ada\"]", "no ad"} {
		if c := ContainerImageOf(ad); c != nil {
			t.Errorf("of %q: %+v", ad, c)
		}
	}
}
