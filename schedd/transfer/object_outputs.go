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
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/object"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// The naive way has a machine put each output where it belongs. Then an output may be
// there in part, of an attempt that goes on elsewhere; and a machine that was given up
// may still write. So each output is an upload in parts, which belongs to one attempt.
// Nobody sees it before this side completes it, and what comes for an upload that was
// completed or aborted is refused by the object store. All uploads of an attempt are
// written down before the machine gets the first address, so that a schedd that is
// started again completes them, or aborts those of attempts that are lost.

// attemptMetadata is the metadata of an object that says which attempt has stored it.
const attemptMetadata = "roost-attempt"

// requestedObjects are the outputs of an attempt that go to object stores. Those of an
// attempt that another one follows are not stored.
func (c *OutputFetch) requestedObjects() (list []*wire.FileEntry) {
	switch c.Exited.GetStatus().GetCause() {
	case wire.Cause_CAUSE_VACATED, wire.Cause_CAUSE_PREEMPTED, wire.Cause_CAUSE_MACHINE, wire.Cause_CAUSE_LEASE,
		wire.Cause_CAUSE_REMOVED, wire.Cause_CAUSE_RESTORE, wire.Cause_CAUSE_REFUSED:
		return nil
	}
	for _, e := range c.Exited.GetOutputs() {
		if isObjectEntry(e) && !e.GetDir() {
			list = append(list, e)
		}
	}
	return list
}

// objectOutputs stores the outputs of an attempt in object stores.
type objectOutputs struct {
	*OutputFetch
	entries []*wire.FileEntry
	outputs []int // of each entry, which output of the job it is of
	record  *uploadRecord
}

// storeObjects stores the outputs that go to object stores, all or none.
func (c *OutputFetch) storeObjects(ctx context.Context) error {
	s := &objectOutputs{OutputFetch: c, entries: c.requestedObjects()}
	if len(s.entries) == 0 {
		return nil
	}
	if len(s.entries) > maxObjects {
		return objectError{fmt.Errorf("%w: its outputs are %d objects, and %d is the most: put them into archives",
			roost.Exhausted, len(s.entries), maxObjects)}
	}
	waits, done := c.progress.beginWait(c.Attempt, outputTransfer)
	defer done()
	err := retryUntilReachable(ctx, func() error {
		err := s.try(ctx)
		if err != nil {
			waits.note(0, err.Error())
		}
		return err
	})
	bytes := int64(0)
	for _, e := range s.entries {
		bytes += e.GetSize()
	}
	s.objects.count(metrics.ObjectOutput, len(s.entries), bytes, err)
	switch {
	case err == nil:
	case ctx.Err() == nil:
		s.objects.abortUploads(ctx, s.record)
	default: // the task was removed, or its machine is reached in another way
		go s.objects.abortIfOver(s.record)
	}
	return err
}

// try stores all of them, and goes on where an earlier try, or an earlier schedd, ended.
func (s *objectOutputs) try(ctx context.Context) error {
	moves, stored, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	session := &objectSession{s.FileTransfers, s.Peer, s.Attempt, outputTransfer, moves}
	if len(moves) > 0 {
		if err := session.run(ctx); err != nil {
			return s.restartLost(err)
		}
	}
	if err := s.complete(ctx, moves, stored); err != nil {
		return s.restartLost(err)
	}
	if err := s.writeManifests(ctx, stored); err != nil {
		return err
	}
	return s.objects.removeRecord(s.record)
}

// restartLost has the next try begin anew if the object store no longer has an upload.
// Administrators have it abort old ones.
func (s *objectOutputs) restartLost(err error) error {
	answer, ok := errors.AsType[*object.StoreError](err)
	if !ok || answer.Code != "NoSuchUpload" || s.record == nil || s.record.Restarted {
		return err
	}
	for i := range s.record.Uploads {
		s.record.Uploads[i].ID = ""
	}
	s.record.Restarted = true
	return fmt.Errorf("%w: %w", roost.Unavailable, err)
}

// storedObject is an output that is in its object store.
type storedObject struct {
	account *objectAccount
	url     jobad.ObjectURL
	info    manifestFile // without its name
	empty   bool         // it has no part that a machine could upload
}

// prepare begins the uploads that are not begun, and finds out what was stored before.
func (s *objectOutputs) prepare(ctx context.Context) (moves []objectMove, stored []storedObject, err error) {
	if s.record == nil {
		if s.record, err = s.objects.readRecord(s.Attempt); err != nil {
			return nil, nil, err
		}
	}
	if s.record == nil {
		s.record = newUploadRecord(s.Attempt, s.Owner, s.SubmitHost)
	}
	stored, all := make([]storedObject, len(s.entries)), make([]*objectMove, len(s.entries))
	s.outputs = make([]int, len(s.entries))
	uploads := make([]objectUpload, len(s.entries))
	work, limited := errgroup.WithContext(ctx)
	work.SetLimit(objectsAtOnce)
	for i, e := range s.entries {
		u, number, err := s.outputObject(e)
		if err != nil {
			return nil, nil, err
		}
		account, err := s.objects.accountFor(ctx, s.Owner, s.SubmitHost, u)
		if err != nil {
			return nil, nil, err
		}
		stored[i], s.outputs[i] = storedObject{account: account, url: u}, number
		uploads[i] = s.record.find(account.store.Name, u)
		work.Go(func() (err error) {
			all[i], err = s.prepareUpload(limited, e, &stored[i], &uploads[i])
			return account.explain(u, err)
		})
	}
	err = work.Wait()
	s.record.Uploads = uploads
	// also those that were begun before one failed
	if saved := s.objects.writeRecord(s.record); err == nil {
		err = saved
	}
	for _, m := range all {
		if m != nil {
			moves = append(moves, *m)
		}
	}
	return moves, stored, err
}

// prepareUpload begins or continues the upload of one output, nil if it was completed.
func (s *objectOutputs) prepareUpload(ctx context.Context, e *wire.FileEntry, to *storedObject,
	upload *objectUpload) (*objectMove, error) {
	if e.GetSize() == 0 { // not all object stores take a part without data
		to.empty = true
		return nil, nil
	}
	m := &objectMove{url: to.url, account: to.account, ObjectMove: &wire.ObjectMove{Entry: e, Upload: true,
		PartSize: partSize(e.GetSize())}}
	if upload.ID != "" {
		parts, err := to.account.Parts(ctx, to.url.Bucket, to.url.Key, upload.ID)
		switch {
		case err == nil:
			for _, p := range parts {
				m.Parts = append(m.Parts, &wire.ObjectPart{Number: uint32(p.Number), Etag: p.ETag, Size: p.Size})
			}
			m.upload = upload.ID
			return m, nil
		case !errors.Is(err, roost.NotFound):
			return nil, err
		}
		info, err := to.account.Stat(ctx, to.url.Bucket, to.url.Key)
		if err == nil && info.Metadata[attemptMetadata] == s.record.Attempt && info.Size == e.GetSize() {
			to.info = manifestFile{Size: info.Size, ETag: info.ETag, SHA256: upload.SHA256,
				Mode: fs.FileMode(e.GetMode()).Perm()}
			return nil, nil
		}
	}
	id, err := to.account.BeginUpload(ctx, to.url.Bucket, to.url.Key,
		map[string]string{attemptMetadata: s.record.Attempt})
	if err != nil {
		return nil, err
	}
	m.upload = id
	*upload = objectUpload{Store: to.account.store.Name, Bucket: to.url.Bucket, Key: to.url.Key, ID: id}
	return m, nil
}

// complete makes the objects of the uploads, after it has written down what they are.
func (s *objectOutputs) complete(ctx context.Context, moves []objectMove, stored []storedObject) error {
	for _, m := range moves {
		for i := range s.record.Uploads {
			if s.record.Uploads[i].ID == m.upload {
				s.record.Uploads[i].SHA256 = hex.EncodeToString(m.moved.GetSha256())
			}
		}
	}
	if err := s.objects.writeRecord(s.record); err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(objectsAtOnce)
	for _, m := range moves {
		at := slices.IndexFunc(stored, func(o storedObject) bool { return o.url == m.url })
		work.Go(func() error { return s.completeUpload(ctx, m, &stored[at]) })
	}
	for i, e := range s.entries {
		if o := &stored[i]; o.empty {
			work.Go(func() error { return s.putEmpty(ctx, e, o) })
		}
	}
	return work.Wait()
}

// putEmpty makes an object without data.
func (s *objectOutputs) putEmpty(ctx context.Context, e *wire.FileEntry, to *storedObject) error {
	etag, err := to.account.PutEmpty(ctx, to.url.Bucket, to.url.Key,
		map[string]string{attemptMetadata: s.record.Attempt})
	sum := sha256.Sum256(nil)
	to.info = manifestFile{ETag: etag, SHA256: hex.EncodeToString(sum[:]), Mode: fs.FileMode(e.GetMode()).Perm()}
	return to.account.explain(to.url, err)
}

func (s *objectOutputs) completeUpload(ctx context.Context, m objectMove, to *storedObject) error {
	var parts []object.Part
	size := int64(0)
	for i, p := range m.moved.GetParts() {
		parts = append(parts, object.Part{Number: int(p.GetNumber()), ETag: p.GetEtag(), Size: p.GetSize()})
		if size += p.GetSize(); int(p.GetNumber()) != i+1 {
			return &userfiles.MismatchError{Name: m.GetEntry().GetName(), Cause: "parts of it are missing"}
		}
	}
	if size != m.GetEntry().GetSize() || len(parts) == 0 {
		return &userfiles.MismatchError{Name: m.GetEntry().GetName(),
			Cause: fmt.Sprintf("%d bytes were announced, and %d uploaded", m.GetEntry().GetSize(), size)}
	}
	etag, err := to.account.Complete(ctx, m.url.Bucket, m.url.Key, m.upload, parts)
	if err != nil && !errors.Is(err, roost.NotFound) {
		return to.account.explain(m.url, err)
	}
	// an answer may have been lost, and what the machine says of sizes is a claim
	info, unread := to.account.Stat(ctx, m.url.Bucket, m.url.Key)
	isOurs := unread == nil && info.Metadata[attemptMetadata] == s.record.Attempt
	switch {
	case isOurs && info.Size != size:
		return &userfiles.MismatchError{Name: m.GetEntry().GetName(),
			Cause: fmt.Sprintf("%d bytes were announced, and %d uploaded", size, info.Size)}
	case isOurs:
		etag = info.ETag // some servers say another one when an upload is complete
	case err != nil:
		return to.account.explain(m.url, err)
	}
	to.info = manifestFile{Size: size, ETag: etag, SHA256: hex.EncodeToString(m.moved.GetSha256()),
		Mode: fs.FileMode(m.GetEntry().GetMode()).Perm()}
	return nil
}

// writeManifests writes the manifest of each output that is a directory, after all of its
// objects.
func (s *objectOutputs) writeManifests(ctx context.Context, stored []storedObject) error {
	for number := range s.objectOutputs {
		dir, account, m := s.directoryManifest(number, stored)
		if m == nil {
			continue
		}
		if err := replaceManifest(ctx, account, dir, m); err != nil {
			return account.explain(jobad.ObjectURL{Bucket: dir.Bucket, Key: dir.Key + manifestName}, err)
		}
	}
	return nil
}

// directoryManifest returns the manifest of an output, nil if it is no directory.
func (s *objectOutputs) directoryManifest(number int, stored []storedObject) (dir jobad.ObjectURL,
	account *objectAccount, m *objectManifest) {
	prefix := objectDir + "/" + fmt.Sprint(number) + "/"
	for _, e := range s.Exited.GetOutputs() {
		if name, ok := strings.CutPrefix(e.GetName(), prefix); ok && e.GetDir() {
			if top := name + "/"; dir.Key == "" || len(top) < len(dir.Key) {
				dir.Key = top
			}
		}
	}
	url, err := jobad.ParseObjectURL(s.objectOutputs[number])
	if err != nil {
		return dir, nil, nil
	}
	if dir.Key == "" && !s.isDirectory(number, url) {
		return dir, nil, nil
	}
	dir = jobad.ObjectURL{Bucket: url.Bucket, Key: strings.TrimSuffix(url.Key, "/") + "/"}
	m = &objectManifest{Version: manifestVersion, Job: s.Attempt.Task.Job.String(), Task: s.Attempt.Task.Index,
		Attempt: uint32(s.Attempt.Attempt)}
	for i, o := range stored {
		if s.outputs[i] != number {
			continue
		}
		account = o.account
		f := o.info
		f.Name = strings.TrimPrefix(o.url.Key, dir.Key)
		m.Files = append(m.Files, f)
	}
	if account == nil {
		return dir, nil, nil
	}
	slices.SortFunc(m.Files, func(a, b manifestFile) int { return strings.Compare(a.Name, b.Name) })
	return dir, account, m
}

// isDirectory reports whether objects of an output are below its key.
func (s *objectOutputs) isDirectory(number int, url jobad.ObjectURL) bool {
	for i, e := range s.entries {
		own := path.Join(objectDir, fmt.Sprint(number), url.Key)
		if s.outputs[i] == number && !url.IsPrefix() && strings.HasPrefix(e.GetName(), own+"/") {
			return true
		}
	}
	return false
}

// maxManifestTries is how often a manifest is written that others write, too.
const maxManifestTries = 5

// replaceManifest writes a manifest in the place of the one that is there. Of two
// attempts of one task the one with the higher number wins.
func replaceManifest(ctx context.Context, account *objectAccount, dir jobad.ObjectURL, m *objectManifest) error {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	for tries := 1; ; tries++ {
		old, etag, err := readManifest(ctx, account, dir)
		if err != nil && etag == "" {
			return err
		}
		if old != nil && old.Job == m.Job && old.Task == m.Task && old.Attempt > m.Attempt {
			return &object.StoreError{Status: 412, Text: fmt.Sprintf("attempt %d has stored its output", old.Attempt)}
		}
		err = account.Replace(ctx, dir.Bucket, dir.Key+manifestName, etag, append(data, '\n'))
		if !errors.Is(err, roost.Conflict) || tries >= maxManifestTries {
			return err
		}
	}
}
