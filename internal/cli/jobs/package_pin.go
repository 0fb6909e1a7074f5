package jobs

import (
	"context"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// namePins has what names mean for the jobs that are submitted together. So a label that
// moves in between means one version to all of them.
type namePins struct {
	pulled   map[string]*pulledImage
	versions map[string]*scheddapi.PackageVersion
}

func newNamePins() *namePins {
	return &namePins{pulled: map[string]*pulledImage{}, versions: map[string]*scheddapi.PackageVersion{}}
}

// pin finds out which image and which packages a job means now. A tag or label that moves
// later does not change it.
func (n *namePins) pin(c *frame.Invocation, job *jobspec.Job) error {
	if err := n.pinContainer(c, job); err != nil {
		return err
	}
	return n.pinPackages(c, job)
}

// version asks the pool for the version that NAME@LABEL means.
func (n *namePins) version(c *frame.Invocation, r imageref.Reference) (*scheddapi.PackageVersion, error) {
	if v := n.versions[r.Text]; v != nil {
		return v, nil
	}
	var list *scheddapi.PackageList
	if err := c.CallSchedd(frame.SubmitTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		list, err = s.ListPackages(ctx, &scheddapi.PackageQuery{Name: r.Name, Label: r.Label})
		return err
	}); err != nil {
		return nil, err
	}
	if len(list.GetPackages()) != 1 || len(list.GetPackages()[0].GetVersions()) != 1 {
		return nil, frame.KindErrorf(roost.Internal, "package %s: the pool answered with no version", r)
	}
	v := list.GetPackages()[0].GetVersions()[0]
	n.versions[r.Text] = v
	return v, nil
}

// pinPackages finds out which packages a job means.
func (n *namePins) pinPackages(c *frame.Invocation, job *jobspec.Job) error {
	texts, ok := job.Ad.Strings(roost.AttrPackageMounts)
	if _, pinned := job.Ad.Strings(roost.AttrPackageDigests); !ok || pinned {
		return nil
	}
	var digests, versions []string
	var sizes []classad.Value
	for _, text := range texts {
		m, err := imageref.ParsePackageMount(text)
		if err != nil {
			return err
		}
		r, err := imageref.Parse(m.Reference)
		if err != nil {
			return err
		}
		digest, version, size := r.Digest, r.Digest, int64(0)
		if digest == "" {
			v, err := n.version(c, r)
			if err != nil {
				return err
			}
			if v.GetImage() != nil {
				return frame.KindErrorf(roost.Invalid, "package %s: it is a container image: write image = %q",
					m.Reference, m.Reference)
			}
			digest, version, size = v.GetDigest(), r.Name+"@"+v.GetVersion(), v.GetSize()
		}
		digests, versions, sizes = append(digests, digest), append(versions, version),
			append(sizes, classad.IntValue(size))
	}
	job.Ad.SetStrings(roost.AttrPackageDigests, digests)
	job.Ad.SetStrings(roost.AttrPackageVersions, versions)
	job.Ad.SetValue(roost.AttrPackageSizes, classad.ListValue(sizes...))
	return nil
}

// namedImage returns an image that the pool has by name, as roost image pull describes
// one.
func (n *namePins) namedImage(c *frame.Invocation, r imageref.Reference) (*pulledImage, string, error) {
	v, err := n.version(c, r)
	if err != nil {
		return nil, "", err
	}
	i := v.GetImage()
	if i == nil {
		return nil, "", frame.WithHint(frame.KindErrorf(roost.Invalid, "image %s: it is a package and no container "+
			"image", r), "roost image pull --name "+r.Name+"@VERSION puts an image into the pool")
	}
	return &pulledImage{Digest: v.GetDigest(), Size: v.GetSize(), Environment: i.GetEnvironment(),
			Entrypoint: i.GetEntrypoint(), Command: i.GetCommand(), Workdir: i.GetWorkdir(), User: i.GetUser()},
		r.Name + "@" + v.GetVersion(), nil
}
