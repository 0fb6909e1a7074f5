package route

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// maxAnswer bounds an answer that is made in memory; longer ones are streams.
const maxAnswer = 8 << 20

// minGzip is the size from which an answer is compressed: a shorter one fits into a
// packet anyway.
const minGzip = 1400

// Show answers with a view: as a page if that was called, else as JSON.
func (c *Call) Show(data any) error {
	if c.AsOf.IsZero() {
		c.AsOf = time.Now()
	}
	c.Writer.Header().Set("Roost-As-Of", c.AsOf.UTC().Format(time.RFC3339Nano))
	if c.IsPage {
		c.table.writePage(c, http.StatusOK, c.Route.Template, data)
		return nil
	}
	if c.mediaType != "" && c.mediaType != typeJSON {
		return c.writeRows(data)
	}
	return c.WriteJSON(http.StatusOK, data)
}

// ShowPage answers with a page other than that of the route's view.
func (c *Call) ShowPage(status int, template string, data any) error {
	c.table.writePage(c, status, template, data)
	return nil
}

// WriteJSON answers with a document. Characters that mean something in HTML are escaped.
func (c *Call) WriteJSON(status int, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("%w: %w", roost.Internal, err)
	}
	return c.WriteText(status, typeJSON, append(text, '\n'))
}

// WriteText answers with a whole text, compressed if the client can take it. A client
// that has the same text already gets only that news.
func (c *Call) WriteText(status int, kind string, text []byte) error {
	if len(text) > maxAnswer {
		return fmt.Errorf("%w: the answer has more than %d bytes: ask for less with limit", roost.Exhausted, maxAnswer)
	}
	h := c.Writer.Header()
	h.Set("Content-Type", kind)
	if IsSafe(c.Request.Method) && status == http.StatusOK {
		sum := sha256.Sum256(text)
		tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
		h.Set("ETag", tag)
		h.Set("Cache-Control", "private, no-cache") // it may be kept, and is asked for each time
		if c.Request.Header.Get("If-None-Match") == tag {
			c.Writer.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	h.Add("Vary", "Accept-Encoding")
	if len(text) >= minGzip && acceptsGzip(c.Request) {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, 5)
		if err != nil {
			return err
		}
		z.Write(text) // to memory
		z.Close()
		h.Set("Content-Encoding", "gzip")
		text = b.Bytes()
	}
	h.Set("Content-Length", fmt.Sprint(len(text)))
	c.Writer.WriteHeader(status)
	c.Writer.Write(text) // a client that has gone needs no answer
	return nil
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// writePage answers with a page.
func (t *Table) writePage(c *Call, status int, name string, data any) {
	var b bytes.Buffer
	if err := t.Page(&b, name, c, data); err != nil {
		t.Log.Error("a page cannot be made", "template", name, "error", err)
		writeProblem(c.Writer, ProblemOf(fmt.Errorf("%w: %w", roost.Internal, err)))
		return
	}
	if err := c.WriteText(status, "text/html; charset=utf-8", b.Bytes()); err != nil {
		writeProblem(c.Writer, ProblemOf(err))
	}
}

// Decode reads the body of a request: JSON for the API, and a form's fields for a page.
// form is called for the latter.
func (c *Call) Decode(into any, form func(value func(name string) string)) error {
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if c.IsPage {
		if err != nil || kind != "application/x-www-form-urlencoded" {
			return NewProblem(http.StatusUnsupportedMediaType, "the body is not that of a form", "")
		}
		if err := c.Request.ParseForm(); err != nil {
			return bodyError(err)
		}
		form(c.Request.PostForm.Get)
		return nil
	}
	if err != nil || kind != typeJSON {
		return NewProblem(http.StatusUnsupportedMediaType, "the body is not JSON by its Content-Type",
			"send it with Content-Type: application/json")
	}
	text, err := io.ReadAll(c.Request.Body)
	if err != nil {
		return bodyError(err)
	}
	if err := checkNesting(text); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("body: %w: %w", roost.Invalid, err)
	}
	if d.More() {
		return fmt.Errorf("body: %w: there is more than one document", roost.Invalid)
	}
	return nil
}

func bodyError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	return fmt.Errorf("body: %w: %w", roost.Invalid, err)
}

// maxNesting bounds the depth of a document. The parser is recursive.
const maxNesting = 32

func checkNesting(text []byte) error {
	depth, inString, escaped := 0, false, false
	for _, b := range text {
		switch {
		case inString:
			inString, escaped = escaped || b != '"', !escaped && b == '\\'
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			if depth++; depth > maxNesting {
				return fmt.Errorf("body: %w: it is nested more than %d deep", roost.Invalid, maxNesting)
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}

// SetCookie gives the browser the cookie of a new session, or takes it away if value is
// empty.
func (c *Call) SetCookie(value string) {
	cookie := &http.Cookie{Name: c.table.cookie, Value: value, Path: "/", HttpOnly: true, Secure: c.table.Secure,
		SameSite: http.SameSiteStrictMode}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.Writer, cookie)
}

// loginCookie is the name of the cookie of a login that has begun at another site.
func (t *Table) loginCookie() string { return t.cookie + "-login" }

// SetLoginCookie gives the browser the state of a login at another site. The browser
// sends it, too, when that site leads back here; it gives no rights.
func (c *Call) SetLoginCookie(value string, life time.Duration) {
	cookie := &http.Cookie{Name: c.table.loginCookie(), Value: value, Path: "/", HttpOnly: true, Secure: c.table.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.Writer, cookie)
}

// LoginCookie returns that state; empty: there is none.
func (c *Call) LoginCookie() string {
	cookie, err := c.Request.Cookie(c.table.loginCookie())
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Redirect sends the browser to a page of this server after a form.
func (c *Call) Redirect(path string) error {
	if !isOwnPath(path) {
		return fmt.Errorf("%w: redirect to %q", roost.Internal, path)
	}
	http.Redirect(c.Writer, c.Request, path, http.StatusSeeOther)
	return nil
}

// isOwnPath reports whether a browser that is led to a path stays at this server.
func isOwnPath(path string) bool {
	isHarmful := func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") && !strings.ContainsFunc(path, isHarmful)
}

// Stream answers with pieces as they come. begin sets the headers, before the first
// piece. An error before that is answered as such; later, the connection breaks off.
func (c *Call) Stream(begin func(), send func(write func([]byte) error) error) error {
	started := false
	start := func() {
		if !started {
			begin()
			started = true
			c.Writer.WriteHeader(http.StatusOK)
		}
	}
	flusher := http.NewResponseController(c.Writer)
	err := send(func(piece []byte) error {
		start()
		if _, err := c.Writer.Write(piece); err != nil {
			return errors.Join(http.ErrAbortHandler, err)
		}
		return flusher.Flush()
	})
	if err == nil {
		start()
	}
	return err
}
