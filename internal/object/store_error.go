package object

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/roost-batch/roost"
)

// Info describes an object.
type Info struct {
	Key      string
	Size     int64             // bytes
	ETag     string            // without quotes
	Metadata map[string]string // of the user, by lower-case name; nil if it was not asked for
}

// Part is a part of an upload that the object store has.
type Part struct {
	Number int    // from 1
	ETag   string // without quotes
	Size   int64  // bytes
}

// StoreError is what an object store answered to a request. It names no URL.
type StoreError struct {
	Status int    // of HTTP; 0: there was no answer
	Code   string // of the object store, as "NoSuchKey"; may be empty
	Text   string // of the object store, or of the network
}

func (e *StoreError) Error() string {
	var words []string
	if e.Status != 0 {
		words = append(words, fmt.Sprintf("it answered %d", e.Status))
		if e.Code != "" {
			words[0] += " " + e.Code
		}
	}
	if e.Text != "" {
		words = append(words, e.Text)
	}
	return strings.Join(words, ": ")
}

// Unwrap returns the kind of the error. What another try may do is roost.Unavailable.
func (e *StoreError) Unwrap() error {
	switch {
	case e.Status == 0 || e.Status >= 500 || e.Status == http.StatusTooManyRequests ||
		e.Status == http.StatusRequestTimeout || e.Code == "RequestTimeout" || e.Code == "SlowDown":
		return roost.Unavailable
	case e.Status == http.StatusNotFound:
		return roost.NotFound
	case e.Status == http.StatusPreconditionFailed || e.Status == http.StatusConflict:
		return roost.Conflict
	case e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized:
		return roost.PermissionDenied
	}
	return roost.Invalid
}

// IsSlowDown reports whether the object store asks for fewer requests.
func (e *StoreError) IsSlowDown() bool {
	return e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests || e.Code == "SlowDown"
}

// isExpired reports whether the URL of the request was no longer good.
func (e *StoreError) isExpired() bool {
	return e.Status == http.StatusForbidden || e.Code == "ExpiredToken" || e.Code == "RequestTimeTooSkewed"
}

// maxText is the most bytes of an answer that an error repeats.
const maxText = 300

// ShortText returns the first line of a text from outside, bounded and printable.
func ShortText(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) > maxText {
		text = text[:maxText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// networkError returns the error of a request without an answer. The library has the URL
// in its errors, which is a secret.
func networkError(err error) *StoreError {
	var of *url.Error
	for errors.As(err, &of) {
		err = of.Err
	}
	return &StoreError{Text: ShortText(err.Error())}
}
