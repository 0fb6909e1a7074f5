package jobad

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// TestPackageMounts reads the packages of a job. It asks for machines that mount them,
// and prefers those that have them.
func TestPackageMounts(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("0a", 32), "sha256:"+strings.Repeat("0b", 32)
	newAd := func(name, source string) *classad.Ad {
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "true")
		ad.SetStrings(roost.AttrPackages, []string{"cuda"})
		ad.SetStrings(roost.AttrPackageMounts, []string{"web@live:/app", "model@1:/model", "again@1:/again"})
		ad.SetStrings(roost.AttrPackageDigests, []string{a, b, a})
		if err := ad.SetExpr(roost.AttrPackageSizes, "{10, 20, 10}"); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := ad.SetExpr(name, source); err != nil {
				t.Fatal(err)
			}
		}
		return ad
	}
	p, err := ReadSpec(newAd("", ""))
	if err != nil || p.CheckPinned() != nil {
		t.Fatal(err, p.CheckPinned())
	}
	if want := []PackageSpec{{"web@live", "/app", a, 10}, {"model@1", "/model", b, 20},
		{"again@1", "/again", a, 10}}; !slices.Equal(p.PackageMounts, want) {
		t.Errorf("got %v", p.PackageMounts)
	}
	ask := p.RequestAd("ada", 1000, roost.JobID{})
	request, err := classad.Parse(ask)
	if err != nil || !strings.Contains(ask, "TARGET.HasContainer") {
		t.Fatalf("%v in %s", err, ask)
	}
	if list, _ := request.Strings(roost.AttrPackages); !slices.Equal(list, []string{"cuda", a, b}) {
		t.Errorf("the request prefers machines with %v", list)
	}
	plain := newAd("", "")
	plain.Delete(roost.AttrPackageMounts)
	plain.Delete(roost.AttrPackageDigests)
	plain.Delete(roost.AttrPackageSizes)
	other, err := ReadSpec(plain)
	if err != nil || other.RequestKey("ada", 1, 1, roost.JobID{}) == p.RequestKey("ada", 1, 1, roost.JobID{}) {
		t.Errorf("a job without packages: %v, or its tasks ask for the same", err)
	}
	for name, source := range map[string]string{
		roost.AttrPackageMounts:  `{"web@live:/etc", "model@1:/model", "again@1:/again"}`,
		roost.AttrPackageDigests: `{"md5:1", "md5:2", "md5:3"}`,
		roost.AttrPackageSizes:   `{-1}`,
	} {
		if _, err := ReadSpec(newAd(name, source)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s = %s: got %v", name, source, err)
		}
	}
	for what, source := range map[string]string{"one in another": `{"a@1:/app", "b@1:/app/x", "c@1:/c"}`,
		"fewer than digests": `{"a@1:/app"}`} {
		if _, err := ReadSpec(newAd(roost.AttrPackageMounts, source)); err == nil {
			t.Errorf("%s: it is accepted", what)
		}
	}
	unpinned := newAd("", "")
	unpinned.Delete(roost.AttrPackageDigests)
	if p, err := ReadSpec(unpinned); err != nil || !errors.Is(p.CheckPinned(), roost.Invalid) {
		t.Errorf("without digests: %v, %v", err, p.CheckPinned())
	}
	if p, err := ReadSpec(newAd(roost.AttrAlloc, "true")); err == nil {
		t.Errorf("an alloc set has packages: %+v", p.PackageMounts)
	}
}
