package export

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// Pseudonyms replaces names in records that leave the site. They are those of users,
// groups, projects and machines. What users wrote is dropped: names of jobs, commands,
// directories and reasons. The same key gives the same pseudonyms, in each export;
// without the key nobody finds out whose they are by trying names. nil leaves records as
// they are.
type Pseudonyms struct{ key []byte }

// NewPseudonyms returns the pseudonyms of a key of 16 bytes or more.
func NewPseudonyms(key []byte) (*Pseudonyms, error) {
	if len(key) < minBorgKey {
		return nil, fmt.Errorf("key of pseudonyms: %w: it has %d bytes; take %d random ones or more", roost.Invalid,
			len(key), minBorgKey)
	}
	return &Pseudonyms{key}, nil
}

// nameHash hashes the names of one export. It is not for several goroutines.
type nameHash struct{ mac hash.Hash }

func (p *Pseudonyms) hash() nameHash { return nameHash{hmac.New(sha256.New, p.key)} }

var pseudonymText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (h nameHash) sum(kind, name string) []byte {
	h.mac.Reset()
	io.WriteString(h.mac, "pseudonym "+kind)
	h.mac.Write([]byte{0})
	io.WriteString(h.mac, name)
	return h.mac.Sum(nil)
}

// of returns the pseudonym of a name of a kind: its first letter and 16 more; nothing
// stays nothing.
func (h nameHash) of(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind[:1] + pseudonymText.EncodeToString(h.sum(kind, name)[:10])
}

// number returns the pseudonym of the number of an account, above those that hosts use.
func (h nameHash) number(kind string, n uint32) uint32 {
	return 1<<30 | binary.BigEndian.Uint32(h.sum(kind+" number", fmt.Sprint(n)))>>2
}

// group returns the pseudonym of a path of groups, each part by itself.
func (h nameHash) group(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		parts[i] = h.of("group", part)
	}
	return strings.Join(parts, ".")
}

func (h nameHash) job(j accounting.JobEntry) accounting.JobEntry {
	j.Name, j.Arguments, j.WorkDir = "", "", ""
	j.Host, j.Owner, j.UnixGroup = h.of("node", j.Host), h.of("user", j.Owner), h.of("unixgroup", j.UnixGroup)
	j.Group, j.Project = h.group(j.Group), h.of("project", j.Project)
	j.UID, j.GID = h.number("user", j.UID), h.number("unixgroup", j.GID)
	return j
}

// Jobs returns jobs with pseudonyms.
func (p *Pseudonyms) Jobs(all iter.Seq2[accounting.JobEntry, error]) iter.Seq2[accounting.JobEntry, error] {
	if p == nil {
		return all
	}
	return replaced(all, p.hash().job)
}

// Attempts returns attempts with pseudonyms.
func (p *Pseudonyms) Attempts(all iter.Seq2[accounting.AttemptRecord, error]) iter.Seq2[accounting.AttemptRecord,
	error,
] {
	if p == nil {
		return all
	}
	h := p.hash()
	return replaced(all, func(a accounting.AttemptRecord) accounting.AttemptRecord {
		a.Node, a.Reason = h.of("node", a.Node), ""
		if a.Job != nil {
			job := h.job(*a.Job)
			a.Job = &job
		}
		return a
	})
}

// Machines returns changes of machines with pseudonyms.
func (p *Pseudonyms) Machines(all iter.Seq2[accounting.MachineEvent, error]) iter.Seq2[accounting.MachineEvent, error] {
	if p == nil {
		return all
	}
	h := p.hash()
	return replaced(all, func(m accounting.MachineEvent) accounting.MachineEvent {
		m.Node, m.By, m.Reason = h.of("node", m.Node), h.of("user", m.By), ""
		return m
	})
}

// replaced calls of with each value of a sequence.
func replaced[T any](all iter.Seq2[T, error], of func(T) T) iter.Seq2[T, error] {
	if all == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if err == nil {
				v = of(v)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
