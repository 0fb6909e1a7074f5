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
		"python@3.12":                        {Source: Stored, Name: "python", Label: "3.12"},
		digest:                               {Source: Stored, Digest: digest},
	} {
		want.Text = text
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ubuntu", "docker://", "docker:///x", "docker://a b", "docker://a/../b",
		"docker://-x", "oci:", "oci::tag", "docker-archive:", "x.sif", "a@b@c", "@b", "a@", "../a@b", "a\nb@c",
		"sha256:00", "http://x/y"} {
		if _, err := Parse(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
	}
}
