// Package release says which program wrote an ad, and how its release compares with
// that of this program.
//
// A release is the first two numbers of a version, "0.1" of "0.1.3". Daemons of one
// release and of the one before work together, and read each other's files one release
// back; roost-upgrade(7) is the policy.
package release

import (
	"cmp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Previous is the release before that of this program, "" where there was none.
const Previous = ""

// Protocol is the version of the messages between daemons. It rises when a message of
// it may not be understood one release back.
const Protocol = 1

// Names of attributes, which every daemon with an ad adds to roost.AttrVersion.
const (
	AttrCommit   = "RoostCommit"   // of the source tree; absent where the build does not know it
	AttrProtocol = "RoostProtocol" // Protocol
)

// Program is what a daemon says of the program that it runs.
type Program struct {
	Version  string
	Commit   string // "" if unknown; with "+" at its end: of a tree with changes
	Protocol int64  // 0 if unknown
}

// Own returns what this program is.
func Own() Program {
	return Program{Version: roost.Version, Commit: buildCommit(), Protocol: Protocol}
}

// commitLength is how many digits of a commit are shown.
const commitLength = 12

func buildCommit() (commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), commitLength)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}

// Describe adds to the ad of a daemon what its program is.
func Describe(ad *classad.Ad) {
	own := Own()
	ad.SetString(roost.AttrVersion, own.Version)
	if own.Commit != "" {
		ad.SetString(AttrCommit, own.Commit)
	}
	ad.SetInt(AttrProtocol, own.Protocol)
}

// Of returns what an ad says of the program of its daemon. Ads of machines are claims
// of their nodes, so what is too long is left out.
func Of(ad *classad.Ad) (p Program) {
	p.Version, _ = ad.Str(roost.AttrVersion)
	p.Commit, _ = ad.Str(AttrCommit)
	p.Protocol, _ = ad.Int(AttrProtocol)
	const longest = 64
	if len(p.Version) > longest {
		p.Version = ""
	}
	if len(p.Commit) > longest {
		p.Commit = ""
	}
	return p
}

// Relation is how the release of another program compares with that of this one.
type Relation uint8

// The relations. Programs of the last two do not work with this one for sure.
const (
	Unknown Relation = iota // its version is not one
	Same
	OneBefore
	Newer
	TooOld // older than the release before
)

// String returns the word that commands print.
func (r Relation) String() string {
	return [...]string{"unknown", "same", "previous", "newer", "too-old"}[r]
}

// RelationOf compares the release of a version with that of this program.
func RelationOf(version string) Relation { return relation(roost.Version, Previous, version) }

// relation compares a version with the own one, and with the release before that.
func relation(own, previous, version string) Relation {
	a, okOwn := releaseNumbers(own)
	b, ok := releaseNumbers(version)
	if !ok || !okOwn {
		return Unknown
	}
	before, hasBefore := releaseNumbers(previous)
	switch order := cmp.Or(cmp.Compare(b[0], a[0]), cmp.Compare(b[1], a[1])); {
	case order == 0:
		return Same
	case order > 0:
		return Newer
	case hasBefore && b == before:
		return OneBefore
	}
	return TooOld
}

// releaseNumbers reads the first two numbers of a version.
func releaseNumbers(version string) (n [2]int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return n, false
	}
	for i := range n {
		v, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return n, false
		}
		n[i] = int(v)
	}
	return n, true
}
