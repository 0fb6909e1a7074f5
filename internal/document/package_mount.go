package document

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// PackageMount is a package that the tasks of a job have.
type PackageMount struct {
	Name    string `json:"name"`    // as the user wrote it
	Version string `json:"version"` // NAME@VERSION, what that meant when the job was submitted
	Digest  string `json:"digest"`
	At      string `json:"at"` // where the tasks have it
}

// PackageMountsOf returns what the ad of a job says of its packages.
func PackageMountsOf(adText string) (list []PackageMount) {
	ad, err := classad.Parse(adText)
	if err != nil || adText == "" {
		return nil
	}
	texts, _ := ad.Strings(roost.AttrPackageMounts)
	digests, _ := ad.Strings(roost.AttrPackageDigests)
	versions, _ := ad.Strings(roost.AttrPackageVersions)
	for i, text := range texts {
		m, err := imageref.ParsePackageMount(text)
		if err != nil || len(digests) != len(texts) {
			return nil
		}
		p := PackageMount{Name: m.Reference, Digest: digests[i], At: m.Target}
		if len(versions) == len(texts) {
			p.Version = versions[i]
		}
		list = append(list, p)
	}
	return list
}

// Text describes it in a line.
func (p PackageMount) Text() string {
	text := fmt.Sprintf("%s at %s", p.Name, p.At)
	if p.Version != p.Name && p.Version != "" {
		text += ", pinned to " + p.Version
	}
	return PrintableText(text)
}
