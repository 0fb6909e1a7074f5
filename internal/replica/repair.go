package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
)

// maxFilledEntries bounds the entries that a repair fills in for missing ones.
const maxFilledEntries = 1 << 20

// keyTerm is raft's key of the term.
const keyTerm = "CurrentTerm"

// RepairReport lists the damages on a replica's disk, and what a repair did about them.
type RepairReport = boltfile.RepairReport

// Repair removes damaged entries from the log of the replica in cfg.Dir. With dry it only
// reports what it would remove. It returns nil if nothing is damaged. The replica must
// not run.
//
// It is not for one replica of several, which gets everything from the others when it
// starts. A replica that is alone retains every intact entry; damaged ones are replaced
// by entries without an effect.
func Repair(cfg Config, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	report, err := repairIn(cfg, now, dry)
	if err != nil {
		return report, fmt.Errorf("repair %s: %w", cfg.Dir, diskFullHint(cfg.Dir, err))
	}
	return report, nil
}

func repairIn(cfg Config, now time.Time, dry bool) (*boltfile.RepairReport, error) {
	if _, err := os.Stat(filepath.Join(cfg.Dir, identityFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has never run
	}
	s, err := openStore(cfg.Dir, cfg.Log, func(error) {})
	if err == nil {
		s.close()
		return nil, nil
	}
	damages := damagesOf(err)
	if len(damages) == 0 {
		return nil, err
	}
	report := &boltfile.RepairReport{Path: cfg.Dir, Damages: damages}
	if others := slices.DeleteFunc(slices.Clone(cfg.Peers), func(addr string) bool {
		return addr == cfg.Address
	}); len(others) > 0 {
		report.Actions = []string{fmt.Sprintf("nothing: when the negotiator starts, it gets all that %s have",
			strings.Join(others, ", "))}
		return report, nil
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	old, err := salvageLog(cfg)
	if err != nil {
		return report, errors.Join(err, lock.Close())
	}
	report.Actions = old.repairActions()
	if dry {
		return report, lock.Close()
	}
	report.DamagedPath, err = old.writeLog(cfg, lock, now)
	return report, err
}

// salvagedLog is the intact part of a damaged log.
type salvagedLog struct {
	entries          map[uint64]*raft.Log
	stableValues     map[string][]byte
	last             uint64 // the last acknowledged entry, as far as known
	snapshot         uint64 // index of the newest intact snapshot
	snapshots        []string
	damagedSnapshots []string
}

// salvageLog reads entries from the segments of the log, without the index that says
// where they should be.
func salvageLog(cfg Config) (*salvagedLog, error) {
	old := &salvagedLog{entries: map[uint64]*raft.Log{}, stableValues: map[string][]byte{}}
	m, err := openMark(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer m.close()
	old.last = m.lastWritten
	path := filepath.Join(cfg.Dir, "log")
	if _, err := boltfile.InspectFile(metaPath(path), metaKind(), func(bucket string, key, value []byte) {
		if bucket == metadb.StableBucket {
			old.stableValues[string(key)] = slices.Clone(value)
		}
	}); err != nil {
		return nil, err
	}
	pieces, err := filepath.Glob(filepath.Join(path, "*.wal"))
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		b, err := os.ReadFile(piece)
		if err != nil {
			return nil, err
		}
		old.scanSegment(b, m)
	}
	return old, old.readSnapshots(cfg)
}

// The layout of a frame of raft-wal: its kind, three unused bytes, and the length of its
// contents. Frames begin at multiples of eight bytes.
const (
	frameHeader = 8
	frameEntry  = 1
)

// scanSegment finds the entries in a segment of the log. Of two with the same index the
// later term counts: the other was replaced.
func (old *salvagedLog) scanSegment(b []byte, m *logMark) {
	codec := &wal.BinaryCodec{}
	for at := 0; at+frameHeader <= len(b); at += frameHeader {
		n := int(binary.LittleEndian.Uint32(b[at+4:]))
		if b[at] != frameEntry || n <= 0 || n > len(b)-at-frameHeader {
			continue
		}
		l := new(raft.Log)
		if err := recoverPanic(func() error {
			return codec.Decode(b[at+frameHeader:at+frameHeader+n], l)
		}); err != nil || l.Index == 0 {
			continue
		}
		summed, err := checkEntry(l.Index, l)
		if err != nil || !summed && (!m.existed || l.Index >= m.checksummedFrom) {
			continue
		}
		if was := old.entries[l.Index]; was == nil || was.Term <= l.Term {
			old.entries[l.Index] = l
		}
		old.last = max(old.last, l.Index)
	}
}

// readSnapshots finds the intact snapshots.
func (old *salvagedLog) readSnapshots(cfg Config) error {
	snaps, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, retainedSnapshots,
		newLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	list, err := snaps.List()
	if err != nil {
		return err
	}
	s := snapshotStore{snaps, cfg.Dir, nil}
	all, err := os.ReadDir(filepath.Join(cfg.Dir, snapshotsDir))
	for _, e := range all {
		at := slices.IndexFunc(list, func(m *raft.SnapshotMeta) bool { return m.ID == e.Name() })
		if at < 0 || s.checkSnapshot(e.Name()) != nil {
			old.damagedSnapshots = append(old.damagedSnapshots, e.Name())
			continue
		}
		old.snapshots, old.snapshot = append(old.snapshots, e.Name()), max(old.snapshot, list[at].Index)
	}
	return err
}

// missingRuns lists the missing entries, in runs.
func (old *salvagedLog) missingRuns() (runs [][2]uint64) {
	for index := old.snapshot + 1; index <= old.last; index++ {
		if old.entries[index] != nil {
			continue
		}
		if n := len(runs) - 1; n >= 0 && runs[n][1] == index-1 {
			runs[n][1] = index
		} else {
			runs = append(runs, [2]uint64{index, index})
		}
	}
	return runs
}

func (old *salvagedLog) repairActions() (all []string) {
	for _, name := range old.damagedSnapshots {
		all = append(all, "snapshot "+name+" is set aside")
	}
	retained := 0
	for index := range old.entries {
		if index > old.snapshot {
			retained++
		}
	}
	for _, run := range old.missingRuns() {
		if run[0] == run[1] {
			all = append(all, fmt.Sprintf("entry %d is taken out: what it said is lost", run[0]))
		} else {
			all = append(all, fmt.Sprintf("entries %d to %d are taken out: what they said is lost", run[0], run[1]))
		}
	}
	return append(all, fmt.Sprintf("%d entries and %d snapshots are kept", retained, len(old.snapshots)))
}

// fillGaps returns a log without gaps. If no snapshot is intact and no entry has the
// configuration, the first filled entry makes this replica the only voter.
func (old *salvagedLog) fillGaps(cfg Config) (logs []*raft.Log, term uint64, err error) {
	id, err := readIdentity(cfg.Dir, cfg.Name)
	if err != nil {
		return nil, 0, err
	}
	votes := old.snapshot > 0
	for _, index := range slices.Sorted(maps.Keys(old.entries)) {
		l := old.entries[index]
		term, votes = max(term, l.Term), votes || l.Type == raft.LogConfiguration
	}
	if old.last-old.snapshot > maxFilledEntries {
		return nil, 0, fmt.Errorf("%w: %d entries are gone: put the directory back from a copy", roost.BadConfig,
			old.last-old.snapshot)
	}
	at := uint64(1)
	for index := old.snapshot + 1; index <= old.last; index++ {
		l := old.entries[index]
		switch {
		case l != nil:
			at = max(at, l.Term)
		case !votes:
			only := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id.ID),
				Address: raft.ServerAddress(cfg.Address)}}}
			l, votes = &raft.Log{Index: index, Term: at, Type: raft.LogConfiguration,
				Data: raft.EncodeConfiguration(only)}, true
		default:
			l = &raft.Log{Index: index, Term: at, Type: raft.LogNoop}
		}
		logs = append(logs, l)
	}
	return logs, max(term, at), nil
}

// writeLog writes a new log, and renames the old one. It releases the lock.
func (old *salvagedLog) writeLog(cfg Config, lock *os.File, now time.Time) (aside string, err error) {
	defer lock.Close()
	logs, term, err := old.fillGaps(cfg)
	if err != nil {
		return "", err
	}
	if v := old.stableValues[keyTerm]; len(v) == 8 {
		term = max(term, binary.LittleEndian.Uint64(v))
	} else {
		old.stableValues = nil // a vote without its term is useless; in the next term no vote was given
	}
	if aside, err = setAside(cfg.Dir, now); err != nil {
		return aside, err
	}
	for _, name := range old.snapshots {
		if err := copySnapshot(cfg.Dir, name, now); err != nil {
			return aside, err
		}
	}
	s, err := openLocked(cfg.Dir, lock, cfg.Log, func(error) {})
	if err != nil {
		return aside, err
	}
	defer s.close()
	for key, value := range old.stableValues {
		if err := s.WAL.Set([]byte(key), value); err != nil {
			return aside, err
		}
	}
	if old.stableValues == nil {
		term++
	}
	if err := s.WAL.SetUint64([]byte(keyTerm), term); err != nil || len(logs) == 0 {
		return aside, err
	}
	return aside, s.StoreLogs(logs)
}

// copySnapshot copies an intact snapshot from the renamed ones.
func copySnapshot(dir, name string, now time.Time) error {
	from := filepath.Join(dir, snapshotsDir+damagedSuffix+now.Format("20060102-150405"), name)
	return os.CopyFS(filepath.Join(dir, snapshotsDir, name), os.DirFS(from))
}
