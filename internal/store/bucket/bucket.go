// Package bucket is the client of an object store that speaks the S3 protocol. It
// implements store.Objects.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/roost-batch/roost"
)

// Options say which bucket is used, and as whom.
type Options struct {
	Endpoint        string // "https://s3.example.org", "http://10.0.0.9:9000"
	Bucket          string
	Prefix          string // begins the names of all objects; without a slash at the end
	Region          string // empty: us-east-1, which most servers of one's own accept
	CredentialsFile string // absolute path
}

// Bucket is a bucket of an object store, or the part of it below a prefix.
type Bucket struct {
	client *minio.Core
	name   string
	prefix string // empty, or with a slash at the end
	at     string // for messages: endpoint and bucket
	file   string // of the credentials
}

const (
	defaultRegion = "us-east-1"
	maxAttempts   = 2 // of a request; the callers try again later
	headerTimeout = 20 * time.Second
	listTimeout   = time.Minute // without a further object of a list
)

// Open reads the credentials and returns the bucket. It asks the object store nothing.
func Open(o Options) (*Bucket, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("object store: %w: endpoint: %w", roost.BadConfig, err)
	}
	access, err := readCredentials(o.CredentialsFile)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w: %w", o.Endpoint, roost.BadConfig, err)
	}
	transport.ResponseHeaderTimeout = headerTimeout
	region := o.Region
	if region == "" {
		region = defaultRegion
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(access.key, access.secret,
		access.token), Secure: u.Scheme == "https", Region: region, Transport: transport, MaxRetries: maxAttempts})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w: %w", o.Endpoint, roost.BadConfig, err)
	}
	b := &Bucket{client: client, name: o.Bucket, at: "object store " + o.Endpoint + ", bucket " + o.Bucket,
		file: o.CredentialsFile}
	if o.Prefix != "" {
		b.prefix = o.Prefix + "/"
	}
	return b, nil
}

// explain says what an error of a request means, and what to do. Only a missing object is
// roost.NotFound.
func (b *Bucket) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	reply := minio.ToErrorResponse(err)
	cure := "see whether it runs and is reached from here, and whether endpoint in the objects block of the node " +
		"file is right; nothing is lost, and this is tried again"
	switch {
	case reply.Code == minio.NoSuchKey:
		return fmt.Errorf("%s: object %s: %w", b.at, name, roost.NotFound)
	case reply.Code == minio.NoSuchBucket:
		cure = "make the bucket, or correct its name in the objects block of the node file"
	case reply.StatusCode == http.StatusForbidden || reply.StatusCode == http.StatusUnauthorized:
		cure = "it refuses the keys of " + b.file + ": they need the rights to get, put, list and delete objects of " +
			"this bucket; after a change restart the checkpoint server"
	case reply.StatusCode == http.StatusInsufficientStorage || reply.Code == "XMinioStorageFull":
		cure = "it is full: give it more room"
	}
	return fmt.Errorf("%s: object %s: %w: %s: %s", b.at, name, roost.Unavailable, shortText(err), cure)
}

// shortText returns the begin of an error's first line. What an object store says is its
// own text.
func shortText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Sprintf("%.300s", text)
}

// Put stores an object.
func (b *Bucket) Put(ctx context.Context, name string, data []byte) error {
	info, err := b.client.Client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"})
	if err == nil && info.ETag == "" {
		err = errors.New("it answers a put as no object store does")
	}
	return b.explain(name, err)
}

// Get returns an object of at most most bytes.
func (b *Bucket) Get(ctx context.Context, name string, most int) ([]byte, error) {
	body, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain(name, err)
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	if err != nil {
		return nil, b.explain(name, err)
	}
	if len(data) > most {
		return nil, fmt.Errorf("%s: object %s: %w: it has more than %d bytes, and is another one", b.at, name,
			roost.NotFound, most)
	}
	return data, nil
}

// List calls each for the objects whose names begin so.
func (b *Bucket) List(ctx context.Context, prefix string, each func(name string, changed time.Time) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(listTimeout, cancel)
	defer stalled.Stop()
	for o := range b.client.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix,
		Recursive: true}) {
		if o.Err != nil {
			return b.explain(prefix+"*", o.Err)
		}
		stalled.Reset(listTimeout)
		if name, ok := strings.CutPrefix(o.Key, b.prefix); ok {
			if err := each(name, o.LastModified); err != nil {
				return err
			}
		}
	}
	return b.explain(prefix+"*", ctx.Err())
}

// Remove deletes an object.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	err := b.explain(name, b.client.Client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, roost.NotFound) {
		return nil
	}
	return err
}
