package imageref

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestParse(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]Reference{
		"docker://ubuntu":                    {Source: Registry, Name: "ubuntu"},
		"docker://ghcr.io:5000/a/b_c.d:v1-2": {Source: Registry, Name: "ghcr.io:5000/a/b_c.d:v1-2"},
		"docker://quay.io/x/y@" + digest:     {Source: Registry, Name: "quay.io/x/y@" + digest},
		"oci:/home/ada/layout":               {Source: Layout, Path: "/home/ada/layout"},
		"oci:layout:latest":                  {Source: Layout, Path: "layout", Tag: "latest"},
		"oci:/a:b/c":                         {Source: Layout, Path: "/a:b/c"},
		"docker-archive:/tmp/x.tar":          {Source: Archive, Path: "/tmp/x.tar"},
		"dir:/srv/root":                      {Source: Dir, Path: "/srv/root"},
		"images/a@b.sif":                     {Source: SIF, Path: "images/a@b.sif"},
		"/a b/c:d.sqsh":                      {Source: SquashFS, Path: "/a b/c:d.sqsh"},
		"x.squashfs":                         {Source: SquashFS, Path: "x.squashfs"},
		"python@3.12":                        {Source: Stored, Name: "python", Label: "3.12"},
		digest:                               {Source: Stored, Digest: digest},
	} {
		want.Text = text
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ubuntu", "docker://", "docker:///x", "docker://a b", "docker://a/../b",
		"docker://-x", "oci:", "oci::tag", "docker-archive:", "dir:", "x.sif ", "a@b@c", "@b", "a@", "../a@b", "a\nb@c",
		"sha256:00", "http://x/y"} {
		if _, err := Parse(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
	}
}

// TestWithPath reads the text of a reference with another path.
func TestWithPath(t *testing.T) {
	for text, want := range map[string]string{"oci:a:t": "oci:/b/a:t", "oci:a": "oci:/b/a", "a.sif": "/b/a",
		"a.sqsh": "/b/a", "dir:a": "dir:/b/a", "docker://a": "docker://a", "a@b": "a@b"} {
		r, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.WithPath("/b/a"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
