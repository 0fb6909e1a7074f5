package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// objectsAtOnce is how many requests of one attempt an object store gets at once.
const objectsAtOnce = 8

// How often an object store is tried that cannot be reached, while a machine waits. After
// that the task goes to another one.
const (
	maxObjectTries = 4
	minObjectRetry = time.Second
)

// maxReplaced is how often a fetch begins anew because an object was replaced meanwhile.
const maxReplaced = 3

// objectInputs fetches the objects of an attempt to its machine, and checks where its
// outputs will go.
type objectInputs struct {
	*FileTransfers
	node    *StartdNode
	attempt roost.AttemptID
	files   sandboxFiles
}

// send has the machine fetch all objects. An object that is not there is found before
// anything is moved.
func (s objectInputs) send(ctx context.Context, ready *wire.InputReady) (err error) {
	if !s.files.hasObjects() {
		return nil
	}
	if err := s.files.checkObjectURLs(); err != nil {
		return objectError{err}
	}
	if err := s.checkOutputs(ctx); err != nil {
		return err
	}
	if len(s.files.objectInputs) == 0 {
		return nil
	}
	var first *firstSend
	if s.files.JobTasks > 1 && ready.GetInputCache() && len(s.files.inputs) == 0 {
		if first, err = s.inputCaches.beginFirst(ctx, s.node.Name, s.attempt.Task.Job); err != nil {
			return err
		}
	}
	defer func() { first.end(err == nil) }()
	waits, done := s.progress.beginWait(s.attempt, inputTransfer)
	defer done()
	for tries, wait := 1, minObjectRetry; ; tries, wait = tries+1, 2*wait {
		err = s.fetchAll(ctx, ready)
		if err == nil || ctx.Err() != nil || tries >= maxObjectTries || !errors.Is(err, roost.Unavailable) {
			return err
		}
		waits.note(0, err.Error())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// fetchAll fetches all objects as they are now.
func (s objectInputs) fetchAll(ctx context.Context, ready *wire.InputReady) error {
	for tries, misses := 1, 0; ; {
		moves, err := s.find(ctx)
		if err != nil {
			s.objects.count(metrics.ObjectInput, len(s.files.objectInputs), 0, err)
			return err
		}
		view := s.inputCaches.view(s.node.Name, s.files.UID, s.files.JobTasks > 1)
		versions := make([]string, len(moves))
		for i, m := range moves {
			if ready.GetInputCache() && m.GetEntry().GetSize() >= userfiles.MinCachedBytes && m.GetEtag() != "" {
				versions[i] = fmt.Sprintf("%s %s %s %d", m.account.store.Endpoint, m.url, m.GetEtag(),
					m.GetEntry().GetSize())
				sum, cacheable := view.Find(versions[i])
				if m.Cacheable = cacheable; sum != nil && (m.Sha256 == nil || string(m.Sha256) == string(sum)) {
					m.Cached, m.Sha256 = true, sum
				}
			}
		}
		session := &objectSession{s.FileTransfers, s.node, s.attempt, inputTransfer, moves}
		err = session.run(ctx)
		s.objects.count(metrics.ObjectInput, len(moves), session.bytes(), err)
		switch {
		case err == nil:
			for i, m := range moves {
				if sum := m.moved.GetSha256(); versions[i] != "" && len(sum) == sha256.Size {
					view.Sent(versions[i], sum)
				}
			}
			view.commit()
			return nil
		case errors.Is(err, errMissingObjects) && misses == 0:
			s.inputCaches.forget(s.node.Name)
			misses++
		case isReplaced(err) && tries < maxReplaced:
			tries++
		case errors.Is(err, errMissingObjects):
			return fmt.Errorf("%w: node %s lacks objects of its input cache that were not left out", roost.Unavailable,
				s.node.Name)
		default:
			return err
		}
	}
}

// find asks the object stores for the objects.
func (s objectInputs) find(ctx context.Context) (moves []objectMove, err error) {
	found := make([][]objectMove, len(s.files.objectInputs))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(objectsAtOnce)
	for i, in := range s.files.objectInputs {
		work.Go(func() (err error) {
			found[i], err = s.findInput(ctx, in)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	for _, list := range found {
		moves = append(moves, list...)
	}
	if len(moves) > maxObjects {
		return nil, objectError{fmt.Errorf("%w: its inputs are %d objects, and %d is the most: put them into archives",
			roost.Exhausted, len(moves), maxObjects)}
	}
	return moves, nil
}

// findInput finds an object, or those below a prefix.
func (s objectInputs) findInput(ctx context.Context, in objectInput) ([]objectMove, error) {
	u, err := jobad.ParseObjectURL(in.url)
	if err != nil {
		return nil, objectError{err}
	}
	account, err := s.objects.accountFor(ctx, s.files.Owner, s.files.SubmitHost, u)
	if err != nil {
		return nil, err
	}
	name := path.Clean(in.name)
	if u.IsPrefix() {
		return findPrefix(ctx, account, u, name)
	}
	info, err := account.Stat(ctx, u.Bucket, u.Key)
	if err != nil {
		return nil, account.explain(u, err)
	}
	return []objectMove{inputMove(account, u, info, name, 0)}, nil
}

func inputMove(account *objectAccount, u jobad.ObjectURL, info object.Info, name string, mode fs.FileMode) objectMove {
	if mode == 0 {
		mode = 0o644
	}
	return objectMove{url: u, account: account, ObjectMove: &wire.ObjectMove{Etag: info.ETag,
		Entry: &wire.FileEntry{Name: name, Size: info.Size, Mode: uint32(mode.Perm())}}}
}

// findPrefix finds the objects below a prefix: those of its manifest, or all.
func findPrefix(ctx context.Context, account *objectAccount, u jobad.ObjectURL, name string) (moves []objectMove,
	err error) {
	manifest, _, err := readManifest(ctx, account, u)
	if err != nil {
		return nil, account.explain(u, err)
	}
	if manifest != nil {
		for _, f := range manifest.Files {
			of := jobad.ObjectURL{Bucket: u.Bucket, Key: u.Key + f.Name}
			m := inputMove(account, of, object.Info{Size: f.Size, ETag: f.ETag}, path.Join(name, f.Name), f.Mode)
			if m.Sha256, err = hex.DecodeString(f.SHA256); err != nil || len(m.Sha256) != sha256.Size {
				m.Sha256 = nil
			}
			moves = append(moves, m)
		}
		return moves, nil
	}
	list, err := account.List(ctx, u.Bucket, u.Key, maxObjects)
	if err != nil {
		return nil, account.explain(u, err)
	}
	for _, info := range list {
		of := jobad.ObjectURL{Bucket: u.Bucket, Key: info.Key}
		if _, err := jobad.ParseObjectURL(of.String()); err != nil {
			return nil, objectError{err}
		}
		moves = append(moves, inputMove(account, of, info, path.Join(name, strings.TrimPrefix(info.Key, u.Key)), 0))
	}
	if len(moves) == 0 {
		return nil, account.explain(u, &object.StoreError{Status: 404, Text: "no key begins so"})
	}
	return moves, nil
}

// checkOutputs finds out whether the buckets of the outputs are there.
func (s objectInputs) checkOutputs(ctx context.Context) error {
	checked := map[string]bool{}
	for _, url := range s.files.objectOutputs {
		u, err := jobad.ParseObjectURL(url)
		if err != nil {
			return objectError{err}
		}
		if checked[u.Bucket] {
			continue
		}
		checked[u.Bucket] = true
		account, err := s.objects.accountFor(ctx, s.files.Owner, s.files.SubmitHost, u)
		if err != nil {
			return err
		}
		// keys that may only write get no answer to this
		if err := account.CheckBucket(ctx, u.Bucket); err != nil && !errors.Is(err, roost.PermissionDenied) {
			return account.explain(u, err)
		}
	}
	return nil
}

// manifestName is the name of the object that lists what is in a directory.
const manifestName = ".roost-manifest.json"

// Bounds of a manifest.
const (
	maxManifest     = 16 << 20 // bytes
	manifestVersion = 1
)

// objectManifest lists the objects of a directory that an attempt has stored.
type objectManifest struct {
	Version int            `json:"version"`
	Job     string         `json:"job"`
	Task    int            `json:"task"`
	Attempt uint32         `json:"attempt"`
	Files   []manifestFile `json:"files"`
}

type manifestFile struct {
	Name   string      `json:"name"` // below the directory
	Size   int64       `json:"size"`
	Mode   fs.FileMode `json:"mode"`
	ETag   string      `json:"etag"`
	SHA256 string      `json:"sha256"`
}

// readManifest reads the manifest below a prefix, nil if there is none. It comes from an
// object store, and all in it is checked.
func readManifest(ctx context.Context, account *objectAccount, u jobad.ObjectURL) (m *objectManifest, etag string,
	err error) {
	data, etag, err := account.Read(ctx, u.Bucket, u.Key+manifestName, maxManifest)
	if answer, ok := errors.AsType[*object.StoreError](err); ok && errors.Is(err, roost.NotFound) &&
		answer.Code != "NoSuchBucket" {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	m = &objectManifest{}
	if err := json.Unmarshal(data, m); err != nil || m.Version != manifestVersion {
		return nil, etag, &object.StoreError{Status: 422, Text: manifestName + " is none that this release can read"}
	}
	for _, f := range m.Files {
		of := jobad.ObjectURL{Bucket: u.Bucket, Key: u.Key + f.Name}
		if _, err := jobad.ParseObjectURL(of.String()); err != nil || f.Size < 0 || f.Name == "" || of.IsPrefix() {
			return nil, etag, &object.StoreError{Status: 422,
				Text: fmt.Sprintf("%s names %.100q", manifestName, f.Name)}
		}
	}
	return m, etag, nil
}
