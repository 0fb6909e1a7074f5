package document

import (
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Package is a name of packages or container images, with its versions and labels.
type Package struct {
	Name      string            `json:"name"`
	Owner     string            `json:"owner"`
	Node      string            `json:"node"`   // the submit node of the owner
	Labels    map[string]string `json:"labels"` // the version that each names
	Versions  uint32            `json:"version_count"`
	Forgotten uint32            `json:"forgotten_moves"` // of labels, the oldest ones
}

// PackageOf returns the document of a name.
func PackageOf(p *scheddapi.Package) Package {
	d := Package{Name: p.GetName(), Owner: p.GetOwner(), Node: p.GetNode(), Labels: map[string]string{},
		Versions: p.GetVersionCount(), Forgotten: p.GetForgottenMoves()}
	for _, l := range p.GetLabels() {
		d.Labels[l.GetLabel()] = l.GetVersion()
	}
	return d
}

// PackageVersion is a version of a name.
type PackageVersion struct {
	Version string         `json:"version"`
	Digest  string         `json:"digest"`
	Size    int64          `json:"size"` // bytes
	User    string         `json:"user"` // who made it
	Time    string         `json:"time"`
	Image   *ImageSettings `json:"image,omitempty"` // of a container image
}

// ImageSettings is what a container image says of the programs that run in it.
type ImageSettings struct {
	Environment []string `json:"environment"`
	Entrypoint  []string `json:"entrypoint"`
	Command     []string `json:"command"`
	Workdir     string   `json:"workdir"`
	User        string   `json:"user"`
}

// PackageVersionOf returns the document of a version.
func PackageVersionOf(v *scheddapi.PackageVersion) PackageVersion {
	d := PackageVersion{Version: v.GetVersion(), Digest: v.GetDigest(), Size: v.GetSize(), User: v.GetUser(),
		Time: Timestamp(v.GetTimeS() * 1e9)}
	if i := v.GetImage(); i != nil {
		d.Image = &ImageSettings{Environment: listOf(i.GetEnvironment()), Entrypoint: listOf(i.GetEntrypoint()),
			Command: listOf(i.GetCommand()), Workdir: i.GetWorkdir(), User: i.GetUser()}
	}
	return d
}

// listOf is a list of texts in JSON, where none is an empty list.
func listOf(texts []string) []string { return append([]string{}, texts...) }

// PackageMove is a move of a label.
type PackageMove struct {
	Label string `json:"label"`
	From  string `json:"from"` // the version before; empty: none
	To    string `json:"to"`   // the version after; empty: the label was removed
	User  string `json:"user"` // who moved it
	Time  string `json:"time"`
}

// PackageMoveOf returns the document of a move.
func PackageMoveOf(m *scheddapi.PackageMove) PackageMove {
	return PackageMove{m.GetLabel(), m.GetFrom(), m.GetTo(), m.GetUser(), Timestamp(m.GetTimeS() * 1e9)}
}
