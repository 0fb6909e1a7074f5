package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/object"
)

// AccountOptions say which object store is used, and as whom.
type AccountOptions struct {
	Endpoint  string // "https://s3.example.org"
	Region    string // empty: us-east-1
	PathStyle bool
	Keys      []byte // in the form of ~/.aws/credentials
	Backoff   *object.Backoff
}

// Account is what a user may do in an object store. It tries requests again that the
// object store could not answer. Its errors are *object.StoreError, with the kinds that
// type has.
type Account struct {
	client  *minio.Core
	host    string
	backoff *object.Backoff
}

// OpenAccount reads the keys. It asks the object store nothing.
func OpenAccount(o AccountOptions) (*Account, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("%w: endpoint: %w", roost.BadConfig, err)
	}
	access := parseCredentials(string(o.Keys))
	if access.key == "" || access.secret == "" {
		return nil, fmt.Errorf("%w: there are no keys in it: it needs the lines aws_access_key_id = … and "+
			"aws_secret_access_key = …, as in ~/.aws/credentials", roost.Invalid)
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", roost.BadConfig, err)
	}
	transport.ResponseHeaderTimeout = headerTimeout
	region, lookup := o.Region, minio.BucketLookupAuto
	if region == "" {
		region = defaultRegion
	}
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(access.key, access.secret,
		access.token), Secure: u.Scheme == "https", Region: region, Transport: transport, MaxRetries: 1,
		BucketLookup: lookup})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", roost.BadConfig, err)
	}
	return &Account{client, u.Host, o.Backoff}, nil
}

// Bounds of the patience with an object store.
const (
	requestTimeout  = time.Minute
	maxRequestTries = 6
	minRequestRetry = 200 * time.Millisecond
)

// do makes a request, several times if the object store cannot answer it.
func (a *Account) do(ctx context.Context, request func(ctx context.Context) error) error {
	for tries, wait := 1, minRequestRetry; ; tries, wait = tries+1, 2*wait {
		if err := a.backoff.Wait(ctx, a.host); err != nil {
			return err
		}
		one, cancel := context.WithTimeout(ctx, requestTimeout)
		err := request(one)
		cancel()
		if err == nil {
			a.backoff.Good(a.host)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		answer := storeError(err)
		if answer.IsSlowDown() {
			a.backoff.Slow(a.host)
		}
		if tries >= maxRequestTries || !errors.Is(answer, roost.Unavailable) {
			return answer
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// storeError returns what an object store has answered. The library's texts have no keys
// in them; those of the network could have a URL.
func storeError(err error) *object.StoreError {
	if e, ok := errors.AsType[*object.StoreError](err); ok {
		return e
	}
	var reply minio.ErrorResponse
	if errors.As(err, &reply) && (reply.StatusCode != 0 || reply.Code != "") {
		e := &object.StoreError{Status: reply.StatusCode, Code: object.ShortText(reply.Code),
			Text: object.ShortText(reply.Message)}
		if e.Status == 0 {
			e.Status = statusOf(reply.Code)
		}
		return e
	}
	var of *url.Error
	for errors.As(err, &of) {
		err = of.Err
	}
	return &object.StoreError{Text: object.ShortText(err.Error())}
}

// statusOf returns the status that belongs to a code. The library does not always have
// it.
func statusOf(code string) int {
	switch code {
	case minio.NoSuchKey, minio.NoSuchBucket, "NoSuchUpload":
		return http.StatusNotFound
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return http.StatusForbidden
	case "PreconditionFailed":
		return http.StatusPreconditionFailed
	case "SlowDown", "ServiceUnavailable":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// Waits says for how long the object store gets no request, because it asked for fewer.
func (a *Account) Waits() time.Duration { return a.backoff.Remaining(a.host) }

// Stat describes an object. The answer to such a request has no text, so that a missing
// bucket is looked for on its own.
func (a *Account) Stat(ctx context.Context, bucket, key string) (info object.Info, err error) {
	err = a.do(ctx, func(ctx context.Context) error {
		o, err := a.client.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
		info = object.Info{Key: key, Size: o.Size, ETag: o.ETag, Metadata: map[string]string{}}
		for name, value := range o.UserMetadata {
			info.Metadata[strings.ToLower(name)] = value
		}
		return err
	})
	if !errors.Is(err, roost.NotFound) {
		return info, err
	}
	if missing := a.CheckBucket(ctx, bucket); errors.Is(missing, roost.NotFound) {
		return info, missing
	}
	return info, err
}

// CheckBucket returns an error of kind roost.NotFound if there is no such bucket.
func (a *Account) CheckBucket(ctx context.Context, bucket string) error {
	there := false
	err := a.do(ctx, func(ctx context.Context) (err error) {
		there, err = a.client.BucketExists(ctx, bucket)
		return err
	})
	if err == nil && !there {
		return &object.StoreError{Status: http.StatusNotFound, Code: minio.NoSuchBucket}
	}
	return err
}

// List lists the objects below a prefix, roost.Exhausted if there are more than most.
func (a *Account) List(ctx context.Context, bucket, prefix string, most int) (list []object.Info, err error) {
	for token := ""; ; {
		var page minio.ListBucketV2Result
		err := a.do(ctx, func(context.Context) (err error) {
			page, err = a.client.ListObjectsV2(bucket, prefix, "", token, "", 1000)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if strings.HasSuffix(o.Key, "/") {
				continue // made by consoles, as a directory
			}
			list = append(list, object.Info{Key: o.Key, Size: o.Size, ETag: strings.Trim(o.ETag, `"`)})
		}
		if len(list) > most {
			return nil, fmt.Errorf("%w: it has more than %d objects", roost.Exhausted, most)
		}
		if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
			return list, nil
		}
	}
}

// Read returns an object of at most most bytes with its ETag.
func (a *Account) Read(ctx context.Context, bucket, key string, most int) (data []byte, etag string, err error) {
	err = a.do(ctx, func(ctx context.Context) error {
		body, info, _, err := a.client.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		etag = info.ETag
		data, err = io.ReadAll(io.LimitReader(body, int64(most)+1))
		return err
	})
	if err == nil && len(data) > most {
		err = fmt.Errorf("%w: it has more than %d bytes", roost.Exhausted, most)
	}
	return data, etag, err
}

// Replace stores a small object in the place of the one with an ETag. If that is empty,
// none may be there. If another one is there the error is of kind roost.Conflict.
func (a *Account) Replace(ctx context.Context, bucket, key, etag string, data []byte) error {
	return a.do(ctx, func(ctx context.Context) error {
		o := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/json"}
		if etag == "" {
			o.SetMatchETagExcept("*")
		} else {
			o.SetMatchETag(etag)
		}
		_, err := a.client.Client.PutObject(ctx, bucket, key, bytes.NewReader(data), int64(len(data)), o)
		return err
	})
}

// emptySHA256 is the SHA-256 of nothing.
const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// PutEmpty stores an object without data.
func (a *Account) PutEmpty(ctx context.Context, bucket, key string, metadata map[string]string) (etag string,
	err error) {
	err = a.do(ctx, func(ctx context.Context) error {
		// signed in pieces, it would have no length
		info, err := a.client.PutObject(ctx, bucket, key, bytes.NewReader(nil), 0, "", emptySHA256,
			minio.PutObjectOptions{DisableContentSha256: true, UserMetadata: metadata,
				ContentType: "application/octet-stream"})
		etag = info.ETag
		return err
	})
	return etag, err
}

// BeginUpload begins an upload, which nobody sees before it is complete.
func (a *Account) BeginUpload(ctx context.Context, bucket, key string, metadata map[string]string) (id string,
	err error) {
	err = a.do(ctx, func(ctx context.Context) (err error) {
		id, err = a.client.NewMultipartUpload(ctx, bucket, key, minio.PutObjectOptions{UserMetadata: metadata,
			ContentType: "application/octet-stream"})
		return err
	})
	return id, err
}

// Parts lists the parts of an upload that the object store has.
func (a *Account) Parts(ctx context.Context, bucket, key, id string) (list []object.Part, err error) {
	for marker := 0; ; {
		var page minio.ListObjectPartsResult
		err := a.do(ctx, func(ctx context.Context) (err error) {
			page, err = a.client.ListObjectParts(ctx, bucket, key, id, marker, 1000)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range page.ObjectParts {
			list = append(list, object.Part{Number: p.PartNumber, ETag: strings.Trim(p.ETag, `"`), Size: p.Size})
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return list, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// Complete makes the object of the parts of an upload.
func (a *Account) Complete(ctx context.Context, bucket, key, id string, parts []object.Part) (etag string, err error) {
	all := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		all[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag}
	}
	err = a.do(ctx, func(ctx context.Context) error {
		info, err := a.client.CompleteMultipartUpload(ctx, bucket, key, id, all, minio.PutObjectOptions{})
		etag = info.ETag
		return err
	})
	return etag, err
}

// Abort ends an upload. One that is not there is no error.
func (a *Account) Abort(ctx context.Context, bucket, key, id string) error {
	err := a.do(ctx, func(ctx context.Context) error {
		return a.client.AbortMultipartUpload(ctx, bucket, key, id)
	})
	if errors.Is(err, roost.NotFound) {
		return nil
	}
	return err
}

// PresignGet returns an address that is good for fetching an object for some time.
func (a *Account) PresignGet(bucket, key string, valid time.Duration) (string, error) {
	return a.presign(http.MethodGet, bucket, key, valid, nil)
}

// PresignPart returns an address that is good for uploading one part of an upload.
func (a *Account) PresignPart(bucket, key, id string, part int, valid time.Duration) (string, error) {
	return a.presign(http.MethodPut, bucket, key, valid, url.Values{"uploadId": {id},
		"partNumber": {strconv.Itoa(part)}})
}

func (a *Account) presign(method, bucket, key string, valid time.Duration, query url.Values) (string, error) {
	u, err := a.client.Presign(context.Background(), method, bucket, key, valid, query)
	if err != nil {
		return "", storeError(err)
	}
	return u.String(), nil
}
