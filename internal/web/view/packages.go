package view

import (
	"context"
	"slices"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// PackageList is the names of packages and container images in the store of the pool. It
// has what the user is charged for there, too.
type PackageList struct {
	Version  int                `json:"v"`
	Packages []document.Package `json:"packages"`
	More     bool               `json:"more"` // there are others, after the last one
	Blobs    []StoredBlob       `json:"blobs"`
	Size     int64              `json:"size"` // bytes of all blobs
}

// StoredBlob is a package or a container image, with or without a name.
type StoredBlob struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"` // bytes
	Used   string `json:"used"` // when it was used last
}

// PackageDetail is a name with all that is known of it.
type PackageDetail struct {
	Version int `json:"v"`
	document.Package
	Versions []document.PackageVersion `json:"versions"` // newest first
	History  []document.PackageMove    `json:"history"`  // newest first
}

// ListPackages lists the names of packages and container images.
func ListPackages(c *route.Call) (any, error) {
	l := PackageList{Version: document.Version, Packages: []document.Package{}, Blobs: []StoredBlob{}}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		list, err := s.ListPackages(ctx, &scheddapi.PackageQuery{After: c.QueryValue("after")})
		if err != nil {
			return err
		}
		for _, p := range list.GetPackages() {
			l.Packages = append(l.Packages, document.PackageOf(p))
		}
		l.More = list.GetMore()
		blobs, err := s.ListBlobs(ctx, &wire.BlobRequest{})
		for _, b := range blobs.GetBlobs() {
			l.Blobs = append(l.Blobs, StoredBlob{b.GetDigest(), b.GetSize(), document.Timestamp(b.GetUsedS() * 1e9)})
			l.Size += b.GetSize()
		}
		return err
	})
	return l, err
}

// Last returns the name after which the next page begins.
func (l PackageList) Last() string {
	if n := len(l.Packages); n > 0 {
		return l.Packages[n-1].Name
	}
	return ""
}

// ShowPackage shows a name.
func ShowPackage(c *route.Call) (any, error) {
	d := PackageDetail{Version: document.Version, Versions: []document.PackageVersion{},
		History: []document.PackageMove{}}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		list, err := s.ListPackages(ctx, &scheddapi.PackageQuery{Name: c.PathValue("name")})
		for _, p := range list.GetPackages() {
			d.Package = document.PackageOf(p)
			for _, v := range slices.Backward(p.GetVersions()) {
				d.Versions = append(d.Versions, document.PackageVersionOf(v))
			}
			for _, m := range slices.Backward(p.GetHistory()) {
				d.History = append(d.History, document.PackageMoveOf(m))
			}
		}
		return err
	})
	return d, err
}

// LabelsOf lists the labels that name a version.
func (d PackageDetail) LabelsOf(version string) (labels []string) {
	for label, v := range d.Labels {
		if v == version {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}
