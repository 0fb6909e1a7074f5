package jobad

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// containerAd returns the ad of a job in an image, with one attribute changed.
func containerAd(t *testing.T, name, source string) *classad.Ad {
	t.Helper()
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "python3")
	ad.SetString(roost.AttrContainerImage, "docker://python:3")
	ad.SetString(roost.AttrContainerDigest, "sha256:"+strings.Repeat("0a", 32))
	ad.SetInt(roost.AttrContainerSize, 1<<30)
	ad.SetStrings(roost.AttrContainerEnvironment, []string{"PATH=/usr/local/bin:/bin", "A="})
	ad.SetStrings(roost.AttrContainerEntrypoint, []string{"/entry", "-x"})
	ad.SetString(roost.AttrContainerWorkdir, "/work")
	ad.SetBool(roost.AttrContainerWritable, true)
	ad.SetStrings(roost.AttrContainerMounts, []string{"/data", "/host:/in:ro"})
	if name != "" {
		if err := ad.SetExpr(name, source); err != nil {
			t.Fatal(err)
		}
	}
	return ad
}

func TestContainer(t *testing.T) {
	p, err := ReadSpec(containerAd(t, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := ContainerSpec{Image: "docker://python:3", Digest: "sha256:" + strings.Repeat("0a", 32), Size: 1 << 30,
		Environment: []string{"PATH=/usr/local/bin:/bin", "A="}, Entrypoint: []string{"/entry", "-x"}, Workdir: "/work",
		Writable: true, Mounts: []imageref.Mount{{Source: "/data", Target: "/data"},
			{Source: "/host", Target: "/in", ReadOnly: true}}}
	if got := fmt.Sprintf("%+v", *p.Container); got != fmt.Sprintf("%+v", want) {
		t.Errorf("got %s, want %+v", got, want)
	}
	ask := p.RequestAd("ada", 1000, roost.JobID{})
	if !strings.Contains(ask, "TARGET.HasContainer") {
		t.Errorf("the request does not ask for a machine with containers: %s", ask)
	}
	if request, err := classad.Parse(ask); err != nil {
		t.Error(err)
	} else if list, _ := request.Strings(roost.AttrPackages); len(list) != 1 || list[0] != want.Digest {
		t.Errorf("the request prefers machines with %v, want the image", list)
	}
	for name, source := range map[string]string{
		roost.AttrContainerDigest: `"md5:1"`, roost.AttrContainerSize: "-1", roost.AttrContainerWorkdir: `"work"`,
		roost.AttrContainerEnvironment: `{"nothing"}`, roost.AttrContainerEntrypoint: "7",
		roost.AttrContainerMounts: `{"relative"}`, roost.AttrContainerWritable: `"yes"`,
	} {
		if _, err := ReadSpec(containerAd(t, name, source)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %s: got %v", name, source, err)
		}
	}
	if err := p.CheckPinned(); err != nil {
		t.Error(err)
	}
	ad := containerAd(t, "", "")
	ad.Delete(roost.AttrContainerDigest)
	if p, err := ReadSpec(ad); err != nil || !errors.Is(p.CheckPinned(), roost.Invalid) {
		t.Errorf("without a digest: got %v, %v, want it refused at its submission", p.Container, err)
	}
	ad = containerAd(t, "", "")
	ad.Delete(roost.AttrContainerImage)
	if _, err := ReadSpec(ad); err == nil {
		t.Error("a digest without an image is accepted")
	}
}
