package userfiles

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/roost-batch/roost"
)

// UserCredential is the user whose rights an agent has.
type UserCredential struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

// TransferEntry is a file or directory that can be transferred.
type TransferEntry struct {
	Name     string      // name at the other end: relative, with slashes, filepath.IsLocal
	Source   string      // absolute path of the file here, if it is not Name below the base
	Size     int64       // bytes
	Stored   int64       // bytes that take room on the disk, without holes
	Mode     fs.FileMode // permission bits
	Dir      bool
	Modified time.Time
	// identity and state of a file that was opened; empty: it has changed just now
	Version string `json:",omitempty"`
}

// Bounds of a transfer.
const (
	ChunkSize  = 256 << 10 // bytes of data in one message
	MaxEntries = 1 << 20   // files of one transfer
	MaxNames   = 128 << 20 // bytes of their names together
)

// CreateOptions configures the creation of a file.
type CreateOptions struct {
	Mode fs.FileMode // permission bits, less the agent's umask of 022; 0 means 0644
	Sync bool        // sync the file before it gets its name
}

// Agent accesses files with a user's rights. Its methods are safe for concurrent use.
// Bases are absolute; names are relative to them and filepath.IsLocal, and no symbolic
// link below the base may lead out of it. Errors have the path and the cause; those of
// reading are roost.NoInput, those of writing roost.NoOutput. A dead agent is
// roost.Unavailable.
type Agent struct{ link *agentConn }

// Expand lists the files that patterns match, directories with their contents, sorted by
// name and without duplicates. A pattern has the form of filepath.Match in each part of
// its path, and is relative to base or absolute. A file below base has its relative path
// as Name, another file the last part of its path. "a => b" reads a and names it b. A
// name without a match is roost.NoInput; a pattern without a match is ignored. Symbolic
// links are followed if a pattern names them. Below directories they are left out, like
// everything that is neither file nor directory, or has a name that cannot be sent (not
// UTF-8, or with control characters). Patterns come from the user's own side, so they may
// lead anywhere the user may read.
func (a *Agent) Expand(ctx context.Context, base string, patterns []string) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opExpand, Base: base, Patterns: patterns, Bound: defaultListLimit()}, nil)
}

// ExpandWithin is Expand with a bound. A longer list is roost.Exhausted.
func (a *Agent) ExpandWithin(ctx context.Context, base string, patterns []string,
	bound ListLimit) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opExpand, Base: base, Patterns: patterns, Bound: bound}, nil)
}

// Snapshot lists the files and directories directly in base, sorted by name. Comparing
// two snapshots shows what is new.
func (a *Agent) Snapshot(ctx context.Context, base string) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opSnapshot, Base: base, Bound: defaultListLimit()}, nil)
}

// SnapshotWithin lists the wanted files of a snapshot, within a bound. A longer list is
// roost.Exhausted.
func (a *Agent) SnapshotWithin(ctx context.Context, base string, bound ListLimit,
	wanted func(TransferEntry) bool) ([]TransferEntry, error) {
	list := &limitedList{limit: bound}
	_, err := a.list(ctx, agentRequest{Op: opSnapshot, Base: base, Bound: defaultListLimit()},
		func(e TransferEntry) error {
			if !wanted(e) {
				return nil
			}
			return list.add(e)
		})
	if err != nil {
		return nil, err
	}
	return list.list, nil
}

// Stat describes one file or directory.
func (a *Agent) Stat(ctx context.Context, base, name string) (TransferEntry, error) {
	r, _, err := a.link.call(ctx, agentRequest{Op: opStat, Base: base, Name: name}, nil)
	if err != nil || len(r.Entries) != 1 {
		return TransferEntry{}, err
	}
	return r.Entries[0], nil
}

// ReadAt reads at most ChunkSize bytes of a file from offset. size is the present size of
// the file. A negative offset counts from the end.
func (a *Agent) ReadAt(ctx context.Context, base, name string, offset int64) (data []byte, size int64, err error) {
	r, data, err := a.link.call(ctx, agentRequest{Op: opReadAt, Base: base, Name: name, Offset: offset}, nil)
	return data, r.Size, err
}

// Append appends data to an existing regular file.
func (a *Agent) Append(ctx context.Context, base, name string, data []byte) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opAppend, Base: base, Name: name}, data)
	return err
}

// AppendOrCreate appends data to a regular file, which it makes if there is none.
func (a *Agent) AppendOrCreate(ctx context.Context, base, name string, data []byte) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opAppend, Base: base, Name: name, Mode: 0o666}, data)
	return err
}

// Mkdir creates a directory below base, with missing parents. An existing directory is
// not changed.
func (a *Agent) Mkdir(ctx context.Context, base, name string, mode fs.FileMode) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opMkdir, Base: base, Name: name, Mode: uint32(mode.Perm())}, nil)
	return err
}

// RemoveAll removes a file or a directory with its contents, without following links. "."
// empties base and retains it. A missing file is no error.
func (a *Agent) RemoveAll(ctx context.Context, base, name string) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opRemove, Base: base, Name: name}, nil)
	return err
}

// Close ends the agent. Calls in progress fail.
func (a *Agent) Close() error { return a.link.close() }

// list collects the pages of a long answer, or calls a function with each entry. An error
// of the function ends the list.
func (a *Agent) list(ctx context.Context, q agentRequest, each func(TransferEntry) error) ([]TransferEntry, error) {
	q.Handle = a.link.nextNumber()
	list := &limitedList{limit: q.Bound}
	if each == nil {
		each = list.add
	}
	for seen := 0; ; {
		r, _, err := a.link.call(ctx, q, nil)
		// the agent runs as a user and is not trusted
		if seen += 1 + len(r.Entries); err == nil && seen > 2*MaxEntries {
			err = fmt.Errorf("%s: %w: the agent's list has no end", q.Base, roost.Exhausted)
		}
		for i := 0; err == nil && i < len(r.Entries); i++ {
			err = each(r.Entries[i])
		}
		if err != nil {
			a.link.dropHandle(q.Handle)
			return nil, err
		}
		if !r.More {
			return list.list, nil
		}
		q = agentRequest{Op: opMore, Handle: q.Handle}
	}
}
