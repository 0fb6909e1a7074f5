package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// PackageSpec is a package that the tasks of a job have.
type PackageSpec struct {
	Reference string // NAME@LABEL, NAME@VERSION or a digest, as the user wrote it
	Target    string // in the sandbox
	Digest    string // of the EROFS file; empty: the submission has not found out
	Size      int64  // bytes of that file; 0: not known
}

// MaxPackageMounts is how many packages the tasks of a job have.
const MaxPackageMounts = 32

// packageMounts reads the packages of a job's ad.
func (r *adReader) packageMounts() (list []PackageSpec) {
	texts, digests := r.list(roost.AttrPackageMounts), r.list(roost.AttrPackageDigests)
	if len(texts) > MaxPackageMounts || len(digests) > 0 && len(digests) != len(texts) {
		r.fail(roost.AttrPackageMounts, fmt.Sprintf("there are %d packages and %d digests, and a job has at most %d "+
			"packages, each with its digest", len(texts), len(digests), MaxPackageMounts))
		return nil
	}
	sizes := r.packageSizes()
	var mounts []imageref.PackageMount
	for i, text := range texts {
		m, err := imageref.ParsePackageMount(text)
		if err != nil {
			r.fail(roost.AttrPackageMounts, err.Error())
		}
		p := PackageSpec{Reference: m.Reference, Target: m.Target}
		if len(digests) > 0 {
			if p.Digest = digests[i]; !imageref.ValidDigest(p.Digest) {
				r.fail(roost.AttrPackageDigests, fmt.Sprintf("%.80q is no digest", p.Digest))
			}
		}
		if len(sizes) == len(texts) {
			p.Size = sizes[i]
		}
		mounts, list = append(mounts, m), append(list, p)
	}
	if err := imageref.CheckPackageTargets(mounts); err != nil {
		r.fail(roost.AttrPackageMounts, err.Error())
	}
	return list
}

// packageSizes reads the sizes of the packages.
func (r *adReader) packageSizes() (sizes []int64) {
	if !r.has(roost.AttrPackageSizes) {
		return nil
	}
	list, ok := r.ad.Eval(roost.AttrPackageSizes, nil).Elements(nil)
	for _, v := range list {
		n, isInt := v.Int()
		ok = ok && isInt && n >= 0
		sizes = append(sizes, n)
	}
	if !ok {
		r.fail(roost.AttrPackageSizes, "a list of sizes in bytes is wanted")
	}
	return sizes
}

// CheckPinned refuses an image or packages of which nobody has found out what their names
// mean. Else they could change while the job waits.
func (p *JobSpec) CheckPinned() error {
	if c := p.Container; c != nil && c.Digest == "" {
		return fmt.Errorf("attribute %s: %w: roost submit finds out which image a name means now, and this submission "+
			"does not say", roost.AttrContainerDigest, roost.Invalid)
	}
	for _, p := range p.PackageMounts {
		if p.Digest == "" {
			return fmt.Errorf("attribute %s: %w: roost submit finds out which package %s means now, and this "+
				"submission does not say", roost.AttrPackageDigests, roost.Invalid, p.Reference)
		}
	}
	return nil
}
