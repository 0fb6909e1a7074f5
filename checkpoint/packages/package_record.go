package packages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/store"
)

// Package is a name and what it means.
type Package struct {
	Name      string            `json:"name"`
	Owner     string            `json:"owner"` // as blobs are charged
	User      string            `json:"user"`  // name of the owner
	Node      string            `json:"node"`  // submit node of the owner; empty: this machine
	Versions  []Version         `json:"versions"`
	Labels    map[string]string `json:"labels"`  // version by label
	History   []Move            `json:"history"` // of the labels, oldest first
	Forgotten int               `json:"forgotten,omitempty"`
}

// Version is a version of a name. One that was removed still says which digest it had.
type Version struct {
	Version string         `json:"version"`
	Digest  store.Digest   `json:"digest"`
	Size    int64          `json:"size"`   // bytes
	Charged string         `json:"charge"` // who is charged for its blob
	User    string         `json:"user"`   // name of who made it
	Time    int64          `json:"time"`   // unix seconds
	Image   *ImageSettings `json:"image,omitempty"`
	Removed bool           `json:"removed,omitempty"`
}

// ImageSettings is what a container image says of the programs that run in it.
type ImageSettings struct {
	Environment []string `json:"environment,omitempty"`
	Entrypoint  []string `json:"entrypoint,omitempty"`
	Command     []string `json:"command,omitempty"`
	Workdir     string   `json:"workdir,omitempty"`
	User        string   `json:"user,omitempty"`
}

// Move is a move of a label.
type Move struct {
	Label string `json:"label"`
	From  string `json:"from,omitempty"` // the version before; empty: none
	To    string `json:"to,omitempty"`   // the version after; empty: the label was removed
	User  string `json:"user"`
	Time  int64  `json:"time"` // unix seconds
}

// Version returns a version that was not removed; nil for none.
func (p *Package) Version(version string) *Version {
	if v := p.versionRecord(version); v != nil && !v.Removed {
		return v
	}
	return nil
}

// versionRecord returns a version, though it may be removed.
func (p *Package) versionRecord(version string) *Version {
	i := slices.IndexFunc(p.Versions, func(v Version) bool { return v.Version == version })
	if i < 0 {
		return nil
	}
	return &p.Versions[i]
}

// Resolve returns the version that a version or label means now.
func (p *Package) Resolve(label string) (*Version, error) {
	if v := p.Version(cmp.Or(p.Labels[label], label)); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("package %s@%s: %w: the name has no such version or label; roost package show %s lists them",
		p.Name, label, roost.NotFound, p.Name)
}

// clone returns a copy that may be changed.
func (p *Package) clone() *Package {
	c := *p
	c.Versions, c.History = slices.Clone(p.Versions), slices.Clone(p.History)
	c.Labels = make(map[string]string, len(p.Labels)+1)
	for label, version := range p.Labels {
		c.Labels[label] = version
	}
	return &c
}

// formatText is the first line of the file of a name.
const (
	formatName = "roost package "
	formatText = formatName + "1"
)

func (p *Package) encode() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return filesum.AppendChecksum(append(append([]byte(formatText+"\n"), text...), '\n')), nil
}

// decode reads the file of a name.
func decode(name string, text []byte) (*Package, error) {
	text, err := filesum.VerifyChecksum(text)
	if err != nil {
		return nil, err
	}
	header, text, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case !bytes.HasPrefix(header, []byte(formatName)):
		return nil, fmt.Errorf("%w: it begins with %.40q", roost.Invalid, header)
	case string(header) != formatText:
		return nil, fmt.Errorf("%w: it has %.40q, and this release reads %q: use the release that wrote it",
			roost.BadConfig, header, formatText)
	}
	p := &Package{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	if p.Name != name {
		return nil, fmt.Errorf("%w: it is the file of %q", roost.Invalid, p.Name)
	}
	return p, nil
}
