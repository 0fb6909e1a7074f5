package inputcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The cache uses at most this part of its file system, unless the options say otherwise,
// and leaves that part of it free for tasks, but not more bytes than that.
const (
	sizeDivisor = 10
	freeDivisor = 10
	maxFree     = 10 << 30
)

// Owner is the user at a submit node whose files they are.
type Owner struct{ Schedd, User string }

// Options are what a cache works with.
type Options struct {
	Log      *slog.Logger
	Dir      string
	MaxBytes int64 // of all files; 0: a tenth of the file system
}

// Cache has the files. Its methods may be called concurrently.
type Cache struct {
	log *slog.Logger
	dir string
	max int64

	mu    sync.Mutex
	files map[string]*cachedFile // by name
	total int64                  // bytes of files, and of what is on its way
}

type cachedFile struct {
	bytes int64 // on the disk
	used  time.Time
}

const (
	fileSuffix     = ".input"
	incomingPrefix = "incoming-"
)

// Open opens the files of an earlier process. What had not arrived completely is removed.
func Open(o Options) (*Cache, error) {
	c := &Cache{log: o.Log, dir: o.Dir, max: o.MaxBytes, files: map[string]*cachedFile{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("input cache: %w", err)
	}
	if c.max == 0 {
		size, _, err := fileSystem(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("input cache %s: %w", o.Dir, err)
		}
		c.max = size / sizeDivisor
	}
	list, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("input cache: %w", err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), fileSuffix) {
			c.files[e.Name()] = &cachedFile{info.Size(), info.ModTime()}
			c.total += info.Size()
		} else if err := os.RemoveAll(filepath.Join(o.Dir, e.Name())); err != nil {
			return nil, fmt.Errorf("input cache: %w", err)
		}
	}
	c.makeRoom(0)
	return c, nil
}

// fileSystem returns the size of the file system of a directory, and how much of it is
// free, in bytes.
func fileSystem(dir string) (size, free int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Blocks) * s.Bsize, int64(s.Bavail) * s.Bsize, nil
}

// Bytes returns how many bytes the files have together.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// fileName returns the name of a file of an owner.
func fileName(o Owner, sum []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %x", o.Schedd, o.User, sum)
	return hex.EncodeToString(h.Sum(nil)) + fileSuffix
}

// open opens a file. The error is fs.ErrNotExist if it is not here.
func (c *Cache) open(name string) (*os.File, error) {
	c.mu.Lock()
	file := c.files[name]
	if file != nil {
		file.used = time.Now()
	}
	c.mu.Unlock()
	if file == nil {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		c.drop(name)
		return nil, err
	}
	now := time.Now()
	os.Chtimes(f.Name(), now, now) // for the next process
	return f, nil
}

// drop removes a file.
func (c *Cache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}

// remove removes a file. c.mu is held.
func (c *Cache) remove(name string) {
	file := c.files[name]
	if file == nil {
		return
	}
	delete(c.files, name)
	c.total -= file.bytes
	if err := os.Remove(filepath.Join(c.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("a file of the input cache stays", "file", name, "error", err)
	}
}

// reserve takes room for bytes of a file whose content is not known yet, and reports
// whether there is any. The room is given back by release.
func (c *Cache) reserve(bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.makeRoom(bytes) {
		return false
	}
	c.total += bytes
	return true
}

func (c *Cache) release(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total -= bytes
}

// makeRoom removes files until so many bytes more are within the bounds. Files are not
// removed for one that does not fit at all. c.mu is held.
func (c *Cache) makeRoom(bytes int64) bool {
	size, free, err := fileSystem(c.dir)
	free -= min(size/freeDivisor, maxFree)
	if err != nil || bytes > c.max || bytes > free+c.cachedBytes() {
		return false
	}
	oldest := make([]string, 0, len(c.files))
	for name := range c.files {
		oldest = append(oldest, name)
	}
	slices.SortFunc(oldest, func(a, b string) int { return c.files[a].used.Compare(c.files[b].used) })
	for _, name := range oldest {
		if c.total+bytes <= c.max && bytes <= free {
			break
		}
		free += c.files[name].bytes
		c.remove(name)
	}
	return c.total+bytes <= c.max && bytes <= free
}

func (c *Cache) cachedBytes() (sum int64) {
	for _, f := range c.files {
		sum += f.bytes
	}
	return sum
}

// add gives a file that has come its name, and its room to the file.
func (c *Cache) add(incoming, name string, reserved int64) error {
	info, err := os.Stat(incoming)
	if err == nil {
		err = os.Rename(incoming, filepath.Join(c.dir, name))
	}
	if err != nil {
		return fmt.Errorf("input cache: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.files[name]; old != nil { // two have brought it
		c.total -= old.bytes
	}
	c.files[name] = &cachedFile{info.Size(), time.Now()}
	c.total += info.Size() - reserved
	return nil
}
