package image

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Header identifies the task of an image. It is authenticated with the rest, and is at
// the beginning.
type Header struct {
	Job      string            `json:"job"`
	Index    uint32            `json:"index"`
	Attempt  uint32            `json:"attempt"`
	Sequence uint64            `json:"sequence"`
	UID      uint32            `json:"uid"`
	GID      uint32            `json:"gid"`
	Node     string            `json:"node,omitempty"` // node on which it was taken
	Time     time.Time         `json:"time"`
	Raw      int64             `json:"raw"`             // bytes of all entries
	Entries  int               `json:"entries"`         // number of entries
	Notes    map[string]string `json:"notes,omitempty"` // what the node needs to know at the restore
}

// ExpectedImage is what a reader expects of an image. Fields that are zero or nil are not
// compared, except Job, Index and UID.
type ExpectedImage struct {
	Job      string
	Index    uint32 // always compared
	UID      uint32 // always compared
	Sequence uint64
	MAC      []byte
}

// Bounds of an image.
const (
	MaxHeader  = 64 << 10 // bytes
	MaxEntries = 1 << 20
	MaxRaw     = int64(16) << 40 // bytes
	MaxName    = 128             // bytes of a flat name
)

// ScratchEntry is the entry with the snapshot of the scratch directory; CRIUDir and IODir
// are the directories of the other entries.
const (
	ScratchEntry = "scratch.tar"
	CRIUDir      = "criu"
	IODir        = "io"
)

// badImage returns the error of an image with wrong contents.
func badImage(format string, args ...any) error {
	return fmt.Errorf("checkpoint image: %w: "+format, append([]any{roost.Invalid}, args...)...)
}

func (h *Header) check() error {
	switch {
	case h.Job == "":
		return badImage("it names no job")
	case h.Raw < 0 || h.Raw > MaxRaw:
		return badImage("%d bytes, at most %d can be", h.Raw, MaxRaw)
	case h.Entries < 0 || h.Entries > MaxEntries:
		return badImage("%d entries, at most %d can be", h.Entries, MaxEntries)
	}
	return nil
}

func (h *Header) encode() ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h)
	if err == nil && len(text) > MaxHeader {
		err = badImage("header of %d bytes, at most %d can be", len(text), MaxHeader)
	}
	return text, err
}

// mismatch returns an error that names what in the header is not as expected.
func (w *ExpectedImage) mismatch(h *Header) error {
	switch {
	case h.Job != w.Job || h.Index != w.Index:
		return badImage("it is of %s[%d], not of %s[%d]", h.Job, h.Index, w.Job, w.Index)
	case h.UID != w.UID:
		return badImage("it is of uid %d, not of %d", h.UID, w.UID)
	case w.Sequence != 0 && h.Sequence != w.Sequence:
		return badImage("it is number %d, not %d", h.Sequence, w.Sequence)
	}
	return nil
}

// checkEntryName accepts only the names that an image may have.
func checkEntryName(name string) error {
	dir, flat, nested := strings.Cut(name, "/")
	switch {
	case name == ScratchEntry:
		return nil
	case !nested || dir != CRIUDir && dir != IODir:
	case flat == "" || len(flat) > MaxName || flat[0] == '.' || strings.ContainsFunc(flat, isForeignCharacter):
	default:
		return nil
	}
	return badImage("an entry is called %.200q", name)
}

// isForeignCharacter reports whether a character occurs in no name of CRIU's files.
func isForeignCharacter(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r))
}
