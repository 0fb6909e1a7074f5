package userfiles

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/roost-batch/roost"
)

// UserCredential says whose rights an agent has.
type UserCredential struct {
	UID, GID uint32
	Groups   []uint32 // supplementary ones
}

// TransferEntry is a file or directory that can be transferred.
type TransferEntry struct {
	Name     string      // at the other end: relative, with slashes, filepath.IsLocal
	Source   string      // where it is here, if that is not Name below the base: an absolute path
	Size     int64       // bytes
	Stored   int64       // bytes of it that take room on its disk: holes do not
	Mode     fs.FileMode // permission bits
	Dir      bool
	Modified time.Time
}

// Bounds.
const (
	ChunkSize  = 256 << 10 // bytes that travel at once
	MaxEntries = 1 << 20   // files of one transfer
	MaxNames   = 128 << 20 // bytes of their names together
)

// CreateOptions says how a file is to be made.
type CreateOptions struct {
	Mode fs.FileMode // permission bits, less the agent's umask of 022; 0 for 0644
	Sync bool        // force it to disk before it gets its name
}

// Agent does the work of files with a user's rights. Its methods may be called by several
// goroutines. Bases are absolute; names are relative to them and filepath.IsLocal, and no
// symbolic link below the base may lead out of it. Errors name the path and the cause;
// those of reading are roost.NoInput, those of writing roost.NoOutput. A dead agent is
// roost.Unavailable.
type Agent struct{ link *agentConn }

// Expand lists what patterns name, directories with all that is in them, sorted by name
// and without doubles. A pattern has the form of filepath.Match in each part of its path
// and is relative to base or absolute. What lies below base keeps its relative path as
// Name, what lies elsewhere is called by the last part of its path. "a => b" reads a and
// calls it b. A name without a match is roost.NoInput, a pattern without one is nothing.
// Symbolic links are followed where a pattern names them, and left out below directories,
// as is all that is neither file nor directory, or has a name that cannot travel (not
// UTF-8, or with control characters). Patterns come from our own side, so they may lead
// anywhere the user may read.
func (a *Agent) Expand(ctx context.Context, base string, patterns []string) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opExpand, Base: base, Patterns: patterns, Bound: defaultListLimit()}, nil)
}

// ExpandWithin is Expand with a bound. More than it allows is roost.Exhausted.
func (a *Agent) ExpandWithin(ctx context.Context, base string, patterns []string,
	bound ListLimit) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opExpand, Base: base, Patterns: patterns, Bound: bound}, nil)
}

// Snapshot lists the files and directories at the top of base, sorted by name; two of
// them tell what is new.
func (a *Agent) Snapshot(ctx context.Context, base string) ([]TransferEntry, error) {
	return a.list(ctx, agentRequest{Op: opSnapshot, Base: base, Bound: defaultListLimit()}, nil)
}

// SnapshotWithin lists of a snapshot what is wanted, within a bound. More than it allows
// is roost.Exhausted.
func (a *Agent) SnapshotWithin(ctx context.Context, base string, bound ListLimit,
	wanted func(TransferEntry) bool) ([]TransferEntry, error) {
	kept := &limitedList{limit: bound}
	_, err := a.list(ctx, agentRequest{Op: opSnapshot, Base: base, Bound: defaultListLimit()},
		func(e TransferEntry) error {
			if !wanted(e) {
				return nil
			}
			return kept.add(e)
		})
	if err != nil {
		return nil, err
	}
	return kept.list, nil
}

// Stat describes one file or directory.
func (a *Agent) Stat(ctx context.Context, base, name string) (TransferEntry, error) {
	r, _, err := a.link.call(ctx, agentRequest{Op: opStat, Base: base, Name: name}, nil)
	if err != nil || len(r.Entries) != 1 {
		return TransferEntry{}, err
	}
	return r.Entries[0], nil
}

// ReadAt reads at most ChunkSize bytes of a file from offset; size is that of the whole
// file now. A negative offset counts from the end.
func (a *Agent) ReadAt(ctx context.Context, base, name string, offset int64) (data []byte, size int64, err error) {
	r, data, err := a.link.call(ctx, agentRequest{Op: opReadAt, Base: base, Name: name, Offset: offset}, nil)
	return data, r.Size, err
}

// Append adds to a file that is there, and is a file.
func (a *Agent) Append(ctx context.Context, base, name string, data []byte) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opAppend, Base: base, Name: name}, data)
	return err
}

// Mkdir makes a directory and those above it, below base. One that is there is kept as it
// is.
func (a *Agent) Mkdir(ctx context.Context, base, name string, mode fs.FileMode) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opMkdir, Base: base, Name: name, Mode: uint32(mode.Perm())}, nil)
	return err
}

// RemoveAll removes what name is, with all below it, following no link; "." empties base
// and keeps it. What is not there is no error.
func (a *Agent) RemoveAll(ctx context.Context, base, name string) error {
	_, _, err := a.link.call(ctx, agentRequest{Op: opRemove, Base: base, Name: name}, nil)
	return err
}

// Close ends the agent. Calls under way fail.
func (a *Agent) Close() error { return a.link.close() }

// list collects the pages of a long answer, or hands each entry to a function. What that
// refuses ends the list.
func (a *Agent) list(ctx context.Context, q agentRequest, each func(TransferEntry) error) ([]TransferEntry, error) {
	q.Handle = a.link.nextNumber()
	kept := &limitedList{limit: q.Bound}
	if each == nil {
		each = kept.add
	}
	for seen := 0; ; {
		r, _, err := a.link.call(ctx, q, nil)
		if seen += 1 + len(r.Entries); err == nil && seen > 2*MaxEntries { // the agent runs as a user
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
			return kept.list, nil
		}
		q = agentRequest{Op: opMore, Handle: q.Handle}
	}
}
