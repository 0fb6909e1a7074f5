package image

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Header says what an image is of. It is authenticated with the rest, and stands in
// front.
type Header struct {
	Job      string            `json:"job"`
	Index    uint32            `json:"index"`
	Attempt  uint32            `json:"attempt"`
	Sequence uint64            `json:"sequence"`
	UID      uint32            `json:"uid"`
	GID      uint32            `json:"gid"`
	Node     string            `json:"node,omitempty"` // that it was taken on
	Time     time.Time         `json:"time"`
	Raw      int64             `json:"raw"`             // bytes of all entries
	Entries  int               `json:"entries"`         // how many there are
	Notes    map[string]string `json:"notes,omitempty"` // what the node wants to know at the restore
}

// ExpectedImage is what a reader expects of an image. What is zero or nil is not
// compared, but Job always is.
type ExpectedImage struct {
	Job      string
	Index    uint32 // compared always
	UID      uint32 // compared always
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

// Scratch is the entry that holds the snapshot of the scratch directory; CRIUDir and
// IODir are the directories of the others.
const (
	ScratchEntry = "scratch.tar"
	CRIUDir      = "criu"
	IODir        = "io"
)

// badImage is the error of an image that is not what it should be.
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

// mismatch says what in the header is not as expected.
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

// checkEntryName lets only the names pass that an image has.
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

// isForeignCharacter reports whether a character stands in no name of CRIUDir's files.
func isForeignCharacter(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r))
}
