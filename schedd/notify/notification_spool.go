package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/schedd/queue"
)

// notificationSpool is a directory with a file for each batch of undelivered
// notifications. The numbers of the files give the order in which they were written.
type notificationSpool struct {
	dir  string
	last uint64
}

func openSpool(dir string) (*notificationSpool, []*queuedNotification, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	b := &notificationSpool{dir: dir}
	var numbers []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.ParseUint(name, 10, 64)
		if !ok || err != nil {
			os.Remove(filepath.Join(dir, e.Name())) // left by an interrupted write
			continue
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var all []*queuedNotification
	var bad error
	for _, n := range numbers {
		b.last = n
		text, err := os.ReadFile(b.path(n))
		var notices []queue.JobNotification
		if err == nil {
			text, err = filesum.VerifyChecksum(text)
		}
		if err == nil {
			err = json.Unmarshal(text, &notices)
		}
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", b.path(n), err))
			b.remove(n)
			continue
		}
		all = append(all, decodeNotifications(n, notices)...)
	}
	return b, all, bad
}

// write writes notifications to a new file and syncs it to disk.
func (b *notificationSpool) write(notices []queue.JobNotification) ([]*queuedNotification, error) {
	text, err := json.Marshal(notices)
	if err != nil {
		return nil, err
	}
	n := b.last + 1
	f, err := os.OpenFile(b.path(n)+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(filesum.AppendChecksum(text))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(b.path(n)+".new", b.path(n))
	}
	if err != nil {
		return nil, err
	}
	b.last = n
	return decodeNotifications(n, notices), nil
}

func (b *notificationSpool) path(n uint64) string {
	return filepath.Join(b.dir, fmt.Sprintf("%020d.json", n))
}

func (b *notificationSpool) remove(n uint64) { os.Remove(b.path(n)) }

// queuedNotification is a notification in the spool.
type queuedNotification struct {
	queue.JobNotification
	file      uint64
	remaining *int // number of undelivered notifications in the file
}

func decodeNotifications(file uint64, notices []queue.JobNotification) []*queuedNotification {
	left := len(notices)
	all := make([]*queuedNotification, len(notices))
	for i, n := range notices {
		all[i] = &queuedNotification{n, file, &left}
	}
	return all
}
