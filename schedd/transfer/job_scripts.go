package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// A script that is too large for a job's ad is kept in a file of its own, below a
// directory for each user and by the digest of what is in it. It is sent here before the
// job that names it is submitted, and to a node before an attempt starts there. It goes
// when no job in the queue names it any more.

// MaxScript is how many bytes a script may have (OpenPBS, jobscript_max_size).
const MaxScript = 100 << 20

// UnusedScriptAge is how long a script stays that no job in the queue names. A job may be
// about to name it, and one that has ended may be run again.
const UnusedScriptAge = 30 * 24 * time.Hour

// scriptChunk is how much of a script goes in one message.
const scriptChunk = 256 << 10

var scriptName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// scriptStore is a directory of scripts.
type scriptStore struct{ dir string }

// Store writes what comes to a file of that user's, and returns its name.
func (d *scriptStore) Store(uid uint32, recv func() ([]byte, error)) (name string, err error) {
	return storeScript(d.userDir("", uid), MaxScript, recv)
}

// Sweep removes the scripts that no job names any more.
func (d *scriptStore) Sweep(now time.Time, inUse func() ([]queue.UserScript, error)) error {
	return sweepScripts(d.dir, now, inUse)
}

func (d *scriptStore) userDir(node string, uid uint32) string { return scriptDir(d.dir, node, uid) }

// scriptDir returns the directory of a user's scripts.
func scriptDir(root, node string, uid uint32) string {
	name := strconv.FormatUint(uint64(uid), 10)
	if node != "" {
		name += "@" + url.PathEscape(node)
	}
	return filepath.Join(root, name)
}

func (d *scriptStore) path(u queue.UserScript) string {
	return filepath.Join(d.userDir(u.Node, u.UID), u.Name)
}

// storeScript writes what comes to a file of that directory, and returns its name.
// Nothing is left of one that does not come to its end, or has more bytes than most.
func storeScript(dir string, most int, recv func() ([]byte, error)) (name string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	defer os.Remove(f.Name()) // it has another name, if all went well
	defer f.Close()
	digest, size := sha256.New(), 0
	for {
		data, err := recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if size += len(data); size > most {
			return "", fmt.Errorf("script: %w: it has more than %v", roost.Exhausted, roost.Bytes(most))
		}
		digest.Write(data)
		if _, err := f.Write(data); err != nil {
			return "", fmt.Errorf("script: %w: %w", roost.NoOutput, err)
		}
	}
	name = hex.EncodeToString(digest.Sum(nil))
	if err := errors.Join(f.Sync(), os.Rename(f.Name(), filepath.Join(dir, name))); err != nil {
		return "", fmt.Errorf("script: %w", err)
	}
	return name, syncDir(dir)
}

// syncDir has the names in a directory on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Check checks that the scripts that jobs name are here, and their user's.
func (d *scriptStore) Check(who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	for i := range specs {
		if _, ok := specs[i].Ad.Lookup(roost.AttrScriptFile); !ok {
			continue
		}
		name, _ := specs[i].Ad.Str(roost.AttrScriptFile)
		path := d.path(queue.UserScript{Node: who.Origin, UID: who.UID, Name: name})
		now := time.Now()
		if !scriptName.MatchString(name) || os.Chtimes(path, now, now) != nil {
			return fmt.Errorf("job %d: attribute %s: %w: no script of yours is kept under that name", i,
				roost.AttrScriptFile, roost.Invalid)
		}
	}
	return nil
}

// sendScript brings an attempt's script to its node.
func (t *FileTransfers) sendScript(ctx context.Context, p *StartdNode, a roost.AttemptID, pl sandboxFiles,
	pace *pacedStream) error {
	if !scriptName.MatchString(pl.ScriptFile) {
		return fmt.Errorf("script %q: %w: that is no name of one", pl.ScriptFile, roost.Invalid)
	}
	f, size, err := t.openScript(ctx, queue.UserScript{Node: pl.ScriptNode, UID: pl.UID, Name: pl.ScriptFile})
	if err != nil {
		return err
	}
	defer f.Close()
	progress, done := t.progress.begin(a, inputTransfer, size)
	defer done()
	pace.progress = progress
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	put, err := p.Client.Put(ctx)
	if err != nil {
		return err
	}
	chunk := &wire.FileChunk{Schedd: t.host, Attempt: codec.AttemptRef(a), Script: true}
	buf, send := make([]byte, scriptChunk), pace.sendPaced(put.Send)
	for {
		if err := send(chunk); err != nil {
			break // the cause comes with the answer
		}
		n, err := f.Read(buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("script: %w: %w", roost.NoInput, err)
		}
		chunk = &wire.FileChunk{Data: append([]byte(nil), buf[:n]...)}
	}
	_, err = put.CloseAndRecv()
	return rpc.FromStatus(err)
}

// openScript opens a script. One of the cell's queue that is not here, or is damaged, is
// fetched from the checkpoint server.
func (t *FileTransfers) openScript(ctx context.Context, u queue.UserScript) (f *os.File, size int64, err error) {
	f, size, err = t.Scripts.open(u)
	if err == nil || u.Node == "" {
		return f, size, err
	}
	if err := t.fetchScript(ctx, u); err != nil {
		return nil, 0, err
	}
	return t.Scripts.open(u)
}

// open opens a script that is whole.
func (d *scriptStore) open(u queue.UserScript) (f *os.File, size int64, err error) {
	if f, err = os.Open(d.path(u)); err != nil {
		return nil, 0, fmt.Errorf("script: %w: %w", roost.NoInput, err)
	}
	digest := sha256.New()
	if size, err = io.Copy(digest, f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && hex.EncodeToString(digest.Sum(nil)) != u.Name {
		err = fmt.Errorf("%s is damaged on disk: submit the job again", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("script: %w: %w", roost.NoInput, err)
	}
	return f, size, nil
}

// sweepScripts removes what has lain below a directory for long and is not in use. What
// is in use is asked afterwards: a job that comes meanwhile makes its script young again.
func sweepScripts(root string, now time.Time, inUse func() ([]queue.UserScript, error)) error {
	old := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && now.Sub(info.ModTime()) > UnusedScriptAge {
			old[path] = true
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || len(old) == 0 {
		return nil
	}
	used, aerr := inUse()
	if err = errors.Join(err, aerr); err != nil {
		return err
	}
	for _, u := range used {
		delete(old, filepath.Join(scriptDir(root, u.Node, u.UID), u.Name))
	}
	for path := range old {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// CheckExist checks that the scripts of jobs that are to run again are still here, and
// has them stay.
func (d *scriptStore) CheckExist(now time.Time, q *queue.Queue) error {
	for _, script := range q.UserScripts() {
		if script.Node != "" {
			continue // the checkpoint server has it, or says so when it is to start
		}
		if err := os.Chtimes(d.path(script), now, now); err != nil {
			return fmt.Errorf("%w: the script of the job is not kept any more: submit it anew", roost.NoInput)
		}
	}
	return nil
}
