package claim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/slot"
)

// File is what a restart must know of a claim.
type File struct {
	ID        uint64
	Epoch     uint64
	Grant     uint64
	Schedd    string
	Owner     string
	About     slot.ClaimInfo
	UID, GID  uint32                    // as the submit node names the user
	Rights    *userfiles.UserCredential `json:",omitempty"` // as whom its tasks run; none: as the release before has it
	Class     gpu.AppClass
	MayWait   bool
	Resources roost.Resources
	Inside    uint64              `json:",omitempty"` // the alloc inside which it is; none: it is a part of the machine
	Placed    *gpu.SavedPlacement `json:",omitempty"` // what it holds; none: it waits
	Cores     []int               `json:",omitempty"` // that its tasks are bound to
	Slack     roost.Bytes         `json:",omitempty"` // memory that it may use beyond its request
	Ports     []roost.ClaimPort   `json:",omitempty"`
	PortJob   string              `json:",omitempty"` // that they are for, with its schedd
	Lease     time.Duration
	BootID    string
	Cookie    string // of the claim's processes, in their environment
}

// attemptRecord is what a restart must know of the attempt that was started last. The
// starter knows more of it.
type attemptRecord struct {
	// a checksum follows, as it does but for the release before; it comes first, where no
	// damage behind it hides it
	Summed bool `json:",omitempty"`

	Job     uint64
	Index   uint32
	Attempt uint32
	Name    string `json:",omitempty"` // of the job
	Notice  time.Duration
	IO      string // directory with what is captured, and the script
	// directory with the scratch directory; in a sandbox with its own /tmp it is that
	Base     string          `json:",omitempty"`
	Boxed    bool            `json:",omitempty"` // it runs in a sandbox
	Walltime time.Duration   `json:",omitempty"`
	Bounds   meter.Limits    `json:",omitzero"`
	Scripts  prologueContext `json:",omitzero"`  // what the machine's scripts are told of it
	Owes     bool            `json:",omitempty"` // the epilogue is to be run when it has ended
	Expected time.Duration   `json:",omitempty"`
	Once     bool            `json:",omitempty"`
	Priority int32           `json:",omitempty"`
	Policy   []byte          `json:",omitempty"` // of checkpoints, as it came
	Next     uint64          `json:",omitempty"` // sequence number of the next image
	Unkept   []byte          `json:",omitempty"` // what the schedd was told of the last one, and has not answered
	Still    bool            `json:",omitempty"` // it is suspended
	// its image was taken of stopped processes, which have to be told to go on
	Stopped bool               `json:",omitempty"`
	Work    priorUsage         `json:",omitzero"`  // that is in the image it went on from
	OwnTemp bool               `json:",omitempty"` // and does not see the machine's /tmp
	Scratch string             `json:",omitempty"`
	Cwd     string             `json:",omitempty"`
	Stdout  string             `json:",omitempty"` // empty: captured; so the next one
	Stderr  string             `json:",omitempty"`
	Join    bool               `json:",omitempty"`
	Origin  meter.Baseline     `json:",omitzero"` // of its measurement
	Outputs []string           `json:",omitempty"`
	Before  map[string]fileAge `json:",omitempty"` // what was in the scratch directory when the program started

	Interactive bool `json:",omitempty"` // it waits for its terminal
	PBS         bool `json:",omitempty"` // it is a job of qsub
	// the number by which sbatch knows it; empty: it is no job of sbatch
	Slurm string `json:",omitempty"`

	Service []byte `json:",omitempty"` // what its program has of a service, as it came; empty: it is of none
	Health  uint8  `json:",omitempty"` // the last state of its checks, a number of package health
	// until when its checks are held, since boot
	HeldUntil roost.BootTime `json:",omitempty"`

	Known string `json:",omitempty"` // of a task of an array the id, with the index that users know it by

	Secrets []secretRecord `json:",omitempty"` // which versions of its secrets it has

	Container *containerRecord `json:",omitempty"` // in whose image it runs; nil: among the machine's files
	Packages  []contentMount   `json:",omitempty"` // that it has

	Reaches bool `json:",omitempty"` // it can have something run on all machines of its job
}

// priorUsage is what was done before, in nanoseconds.
type priorUsage struct{ Wall, User, System int64 }

// fileAge tells whether a file was changed.
type fileAge struct{ Size, Modified int64 }

// writeClaimFile gives the file its name when it is whole.
func writeClaimFile(dir string, f File) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "claim")
	if err := os.WriteFile(path+".new", filesum.AppendChecksum(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readClaimFile(dir string) (f File, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "claim"))
	if err != nil {
		return f, err
	}
	whole, err := filesum.VerifyChecksum(text)
	if err != nil { // what it seems to say is good enough to find processes by
		return f, errors.Join(err, json.NewDecoder(bytes.NewReader(text)).Decode(&f))
	}
	return f, json.Unmarshal(whole, &f)
}

// writeAttempt replaces the record, in one write, which a kill of this process does not
// tear.
func writeAttempt(f *os.File, r *attemptRecord) error {
	summed := *r
	summed.Summed = true
	text, err := json.Marshal(summed)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(filesum.AppendChecksum(text), 0)
	return err
}

func readAttempt(dir string) (r attemptRecord, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "attempt"))
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%w: %w", filesum.ErrDamaged, err)
	}
	end := min(int(d.InputOffset())+1, len(text)) // what follows its checksum is left of a longer one
	if line := bytes.IndexByte(text[end:], '\n'); line >= 0 {
		end += line + 1
	}
	whole, err := filesum.VerifyChecksum(text[:end])
	if err == nil && r.Summed && len(whole) == end {
		err = filesum.ErrDamaged // it has lost its checksum
	}
	return r, err
}

// IDs lists the claims of which something is there, by their ids.
func IDs(dir string) ([]slot.ClaimID, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []slot.ClaimID
	for _, e := range entries {
		if id, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && e.IsDir() {
			ids = append(ids, slot.ClaimID(id))
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// generationBits of a claim's id count the claims of one start of the startd; those above
// count the starts.
const generationBits = 32

// NextGeneration counts this start, on disk, and returns the id of its first claim. So
// no id is used twice, and no claim costs a write for that. A count that is damaged goes
// on from the clock, in seconds, which is above all that starts can have counted.
func NextGeneration(dir string, claims []slot.ClaimID) (slot.ClaimID, error) {
	path := filepath.Join(dir, "generation")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	last := uint64(0)
	if err == nil {
		if last, err = readGeneration(text); err != nil {
			last = uint64(time.Now().Unix())
		}
	}
	for _, id := range claims {
		last = max(last, uint64(id)>>generationBits)
	}
	last++
	if err := os.WriteFile(path+".new", filesum.AppendChecksum(fmt.Appendln(nil, last)), 0o600); err != nil {
		return 0, err
	}
	return slot.ClaimID(last<<generationBits | 1), os.Rename(path+".new", path)
}

// readGeneration reads the count of starts. The release before wrote it without a
// checksum; a number that has lost its end has no end of line.
func readGeneration(text []byte) (uint64, error) {
	text, err := filesum.VerifyChecksum(text)
	if err != nil {
		return 0, err
	}
	number, whole := strings.CutSuffix(string(text), "\n")
	if !whole {
		return 0, filesum.ErrDamaged
	}
	return strconv.ParseUint(number, 10, 32)
}
