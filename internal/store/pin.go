package store

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// maxPinOwner is the most bytes of a pin's owner, as the name of a file.
const maxPinOwner = 200

// scanPins finds the pins of earlier processes.
func (d *Directory) scanPins() error {
	dirs, err := os.ReadDir(d.join(pinsDir))
	for _, dir := range dirs {
		digest := Digest(digestPrefix + dir.Name())
		list, lerr := os.ReadDir(d.join(pinsDir, dir.Name()))
		err = errors.Join(err, lerr)
		for _, e := range list {
			if owner, uerr := url.PathUnescape(e.Name()); uerr == nil && digest.Valid() {
				d.addPin(digest, owner)
			}
		}
	}
	return err
}

func (d *Directory) addPin(digest Digest, owner string) {
	if d.pins[digest] == nil {
		d.pins[digest] = map[string]bool{}
	}
	d.pins[digest][owner] = true
}

// pinPath returns the file of a pin.
func (d *Directory) pinPath(digest Digest, owner string) (string, error) {
	name := strings.ReplaceAll(url.PathEscape(owner), ".", "%2E")
	if !digest.Valid() || name == "" || len(name) > maxPinOwner {
		return "", fmt.Errorf("pin of %.80q on %.80q: %w: there is no such thing", owner, digest, roost.Invalid)
	}
	return d.join(pinsDir, digest.hex(), name), nil
}

// Pin keeps a blob from Collect until Unpin, over restarts too. The blob may still be on
// its way: whoever pins it first and then asks for its Path does not lose it. A pin is
// set once however often it is set.
func (d *Directory) Pin(digest Digest, owner string) error {
	path, err := d.pinPath(digest, owner)
	if err != nil {
		return err
	}
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	d.mu.Lock()
	pinned := d.pins[digest][owner]
	d.mu.Unlock()
	if pinned {
		return nil
	}
	if err = os.MkdirAll(filepath.Dir(path), directoryMode); err == nil {
		err = os.WriteFile(path, nil, blobMode)
	}
	if err != nil {
		return fmt.Errorf("pin of %s on %s: %w", owner, digest.Short(), d.diskError(err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addPin(digest, owner)
	return nil
}

// Unpin removes a pin. A missing one is no error.
func (d *Directory) Unpin(digest Digest, owner string) error {
	path, err := d.pinPath(digest, owner)
	if err != nil {
		return err
	}
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	if err := ignoreNotExist(os.Remove(path)); err != nil {
		return fmt.Errorf("pin of %s on %s: %w", owner, digest.Short(), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pins[digest], owner)
	if len(d.pins[digest]) == 0 {
		delete(d.pins, digest)
		os.Remove(filepath.Dir(path))
	}
	return nil
}

// SetPins has an owner have pins on these blobs and on no others. Those that are not
// there get none, and are returned.
func (d *Directory) SetPins(owner string, digests []Digest) (missing []Digest, err error) {
	wanted := map[Digest]bool{}
	for _, digest := range digests {
		if _, merr := d.Manifest(digest); merr != nil {
			missing = append(missing, digest)
			continue
		}
		wanted[digest] = true
		err = errors.Join(err, d.Pin(digest, owner))
		if path, perr := d.pinPath(digest, owner); perr == nil {
			now := time.Now()
			err = errors.Join(err, ignoreNotExist(os.Chtimes(path, now, now))) // for ExpirePins
		}
	}
	d.mu.Lock()
	var spare []Digest
	for digest, owners := range d.pins {
		if owners[owner] && !wanted[digest] {
			spare = append(spare, digest)
		}
	}
	d.mu.Unlock()
	for _, digest := range spare {
		err = errors.Join(err, d.Unpin(digest, owner))
	}
	return missing, err
}

// ExpirePins removes the pins of owners with a prefix that were last set before a time.
func (d *Directory) ExpirePins(prefix string, before time.Time) error {
	type pin struct {
		digest Digest
		owner  string
	}
	var all []pin
	d.mu.Lock()
	for digest, owners := range d.pins {
		for owner := range owners {
			if strings.HasPrefix(owner, prefix) {
				all = append(all, pin{digest, owner})
			}
		}
	}
	d.mu.Unlock()
	var err error
	for _, p := range all {
		path, perr := d.pinPath(p.digest, p.owner)
		if perr != nil {
			continue
		}
		if info, serr := os.Stat(path); serr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, d.Unpin(p.digest, p.owner))
		}
	}
	return err
}

// Collect removes the blobs that were used longest ago until the others have at most
// limit bytes. It never removes a pinned one, so more may remain.
func (d *Directory) Collect(limit int64) (removed []Digest, err error) {
	return d.collect(time.Now(), func(used int64) (bool, error) { return used <= limit, nil })
}

// CollectSpare is Collect for blobs that nobody has used since a time.
func (d *Directory) CollectSpare(limit int64, since time.Time) (removed []Digest, err error) {
	return d.collect(since, func(used int64) (bool, error) { return used <= limit, nil })
}

// CollectFor removes the blobs that were used longest ago until one of size bytes fits.
// It is roost.Exhausted if what is pinned does not leave so much.
func (d *Directory) CollectFor(size int64) (removed []Digest, err error) {
	return d.collectFor(size, time.Now())
}

// collectFor is CollectFor with blobs that nobody has used since a time.
func (d *Directory) collectFor(size int64, since time.Time) (removed []Digest, err error) {
	var reason error
	removed, err = d.collect(since, func(int64) (bool, error) {
		free, err := d.maxDiskBytes()
		if err != nil {
			return false, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		reason = d.fits("", size, free)
		return reason == nil, nil
	})
	if err == nil {
		err = reason
	}
	return removed, err
}

// collect removes unpinned blobs that nobody has used since a time, oldest use first,
// until isEnough. What was left of blobs that nobody has received for a day goes first.
func (d *Directory) collect(since time.Time, isEnough func(used int64) (bool, error)) (removed []Digest, err error) {
	d.filesMu.Lock()
	defer d.filesMu.Unlock()
	if err := d.removeAbandoned(time.Now().Add(-abandonedAfter)); err != nil {
		return nil, err
	}
	list := d.List()
	for i := len(list); ; i-- {
		if ok, err := isEnough(d.UsedBytes()); ok || err != nil || i == 0 {
			return removed, err
		}
		if e := list[i-1]; len(e.Pins) == 0 && !e.LastUse.After(since) {
			if err := d.removeFiles(e.Digest); err != nil {
				return removed, err
			}
			removed = append(removed, e.Digest)
			d.counts.collectedBlobs.Add(1)
			d.counts.collectedBytes.Add(e.Size)
		}
	}
}

// abandonedAfter is how long the chunks of an unfinished blob wait for the others.
const abandonedAfter = 24 * time.Hour

// removeAbandoned removes the chunks of blobs that nobody receives, and to which none was
// added since a time.
func (d *Directory) removeAbandoned(before time.Time) error {
	list, err := os.ReadDir(d.join(incomingDir))
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), incomingSuffix)
		info, ierr := e.Info()
		if !ok || ierr != nil || info.ModTime().After(before) {
			continue
		}
		digest := Digest(digestPrefix + name)
		if !d.tryEnterReceive(digest) {
			continue
		}
		err = errors.Join(err, ignoreNotExist(os.Remove(d.join(incomingDir, e.Name()))),
			ignoreNotExist(os.Remove(d.join(incomingDir, name+manifestSuffix))))
		d.leaveReceive(digest)
	}
	return err
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
