package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/roost-batch/roost/internal/config"
)

// The keys that the object store of the tests knows. They are in no file of a pool.
const (
	objectKeyID     = "AKIAOBJECTTEST00"
	objectSecretKey = "topsecretkeyofthetestuser0123456789abcdef"
	goodKeys        = "aws_access_key_id = " + objectKeyID + "\naws_secret_access_key = " + objectSecretKey + "\n"
)

// objectServer is an object store that checks signatures, and that a test can have fail.
type objectServer struct {
	*testing.T
	*httptest.Server
	backend *s3mem.Backend

	mu        sync.Mutex
	requests  []string // method and path, of presigned ones
	signature []string // of presigned requests
	fault     func(r *http.Request) (status int, code string)
}

// newObjectServer starts an object store with buckets.
func newObjectServer(t *testing.T, buckets ...string) *objectServer {
	s := &objectServer{T: t, backend: s3mem.New()}
	for _, b := range buckets {
		if err := s.backend.CreateBucket(b); err != nil {
			t.Fatal(err)
		}
	}
	inner := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, code := s.check(r); status != 0 {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>so the test wants</Message></Error>",
				code)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// check refuses requests without a good signature, and those that the test wants to fail.
func (s *objectServer) check(r *http.Request) (status int, code string) {
	if status, code = s.checkSignature(r); status != 0 {
		return status, code
	}
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		return fault(r)
	}
	return 0, ""
}

func (s *objectServer) checkSignature(r *http.Request) (status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := r.URL.Query(); q.Get("X-Amz-Signature") != "" {
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.signature = append(s.signature, q.Get("X-Amz-Signature"))
		if want := presignature(r); want != q.Get("X-Amz-Signature") {
			s.Errorf("%s %s has another signature than %s", r.Method, r.URL.Path, want)
			return http.StatusForbidden, "SignatureDoesNotMatch"
		}
	} else if !strings.Contains(r.Header.Get("Authorization"), "Credential="+objectKeyID+"/") {
		return http.StatusForbidden, "AccessDenied"
	}
	return 0, ""
}

// presignature computes the signature of a presigned request, as the object store does.
func presignature(r *http.Request) string {
	q := r.URL.Query()
	scope := strings.SplitN(q.Get("X-Amz-Credential"), "/", 2)
	if len(scope) != 2 || scope[0] != objectKeyID || q.Get("X-Amz-SignedHeaders") != "host" {
		return "none, for the keys are unknown"
	}
	q.Del("X-Amz-Signature")
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), strings.ReplaceAll(q.Encode(), "+", "%20"),
		"host:" + r.Host, "", "host", "UNSIGNED-PAYLOAD"}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + objectSecretKey)
	for _, part := range append(strings.Split(scope[1], "/"), strings.Join([]string{"AWS4-HMAC-SHA256",
		q.Get("X-Amz-Date"), scope[1], hex.EncodeToString(sum[:])}, "\n")) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func (s *objectServer) setFault(f func(r *http.Request) (status int, code string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// put stores an object.
func (s *objectServer) put(bucket, key, text string) {
	s.Helper()
	if _, err := s.backend.PutObject(bucket, key,
		map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, strings.NewReader(text),
		int64(len(text)), nil); err != nil {
		s.Fatal(err)
	}
}

// get returns an object, and whether it is there.
func (s *objectServer) get(bucket, key string) (text string, there bool) {
	s.Helper()
	o, err := s.backend.GetObject(bucket, key, nil)
	if err != nil {
		return "", false
	}
	defer o.Contents.Close()
	data, err := io.ReadAll(o.Contents)
	if err != nil {
		s.Fatal(err)
	}
	return string(data), true
}

// want checks what an object is.
func (s *objectServer) want(bucket, key, want string) {
	s.Helper()
	if got, there := s.get(bucket, key); !there || got != want {
		s.Errorf("s3://%s/%s is %.200q (%v), want %.200q", bucket, key, got, there, want)
	}
}

// openUploads lists the uploads that are neither complete nor aborted.
func (s *objectServer) openUploads(bucket string) (list []string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.URL+"/"+bucket+"?uploads", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Credential="+objectKeyID+"/")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		s.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "<Upload>")[1:] {
		_, key, _ := strings.Cut(part, "<Key>")
		key, _, _ = strings.Cut(key, "</Key>")
		list = append(list, key)
	}
	return list
}

// objectPool is a pool whose jobs have objects.
type objectPool struct {
	containerPool
	server *objectServer
}

// newObjectPool starts a pool of two machines, and sets the keys of its user.
func newObjectPool(t *testing.T, server *objectServer) *objectPool {
	t.Helper()
	p := &objectPool{containerPool{t: t, home: openDir(t), Pool: nodePool(t, &config.Node{
		Startds: twoNodes(), ObjectStores: []config.ObjectStore{{Name: "lab", Endpoint: server.URL, Plain: true,
			PathStyle: true, Secret: "s3"}}})}, server}
	p.setKeys(goodKeys)
	return p
}

func (p *objectPool) setKeys(text string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.Roost, "secret", "set", "s3")
	cmd.Env = append(os.Environ(), "ROOST_DIR="+p.Dir)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// submit submits a job with these settings, whose task runs a script.
func (p *objectPool) submit(name, settings, script string) string {
	p.t.Helper()
	return strings.TrimSpace(p.mustRun(p.t, "submit", p.write(name+".hcl", "job \""+name+"\" {\n  directory = \""+
		p.home+"\"\n  cpus = 0.1\n  memory = \"16MiB\"\n"+settings+"\n  script = <<END\n"+script+"\nEND\n}\n")))
}

// awaitHeld waits until a job is held for a reason.
func (p *objectPool) awaitHeld(id string, want ...string) {
	p.t.Helper()
	text := p.awaitOutput(p.t, want[0], "why", id)
	for _, w := range want {
		if !strings.Contains(text, w) {
			p.t.Errorf("why %s does not say %q: %s", id, w, text)
		}
	}
	p.mustRun(p.t, "rm", id)
}

// TestObjectTransfer has jobs with objects as inputs and outputs. No file of the pool has
// a key or a presigned address, nor does a command print one.
func TestObjectTransfer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	server := newObjectServer(t, "data", "results")
	big := strings.Repeat("0123456789abcdef", 3<<16) // it is cached
	for key, text := range map[string]string{"a b/ä+x.csv": "1,2,3\n", "big": big, "dir/one": "1", "dir/sub/two": "2",
		"part-0": "zero", "part-1": "one", "empty": ""} {
		server.put("data", key, text)
	}
	p := newObjectPool(t, server)
	p.submit("all", `  count = 2
  inputs = {
    "x.csv" = "s3://data/a b/ä+x.csv", "big" = "s3://data/big", "in" = "s3://data/dir/", "empty" = "s3://data/empty",
    "part" = "s3://data/part-${task.index}"
  }
  outputs = {
    "result.txt" = "s3://results/${task.index}/result.txt", "out" = "s3://results/${task.index}/out",
    "*.log" = "s3://results/${task.index}/logs/", "none" = "s3://results/${task.index}/none",
    "here" = "here-${task.index}"
  }`, `cat x.csv part in/one in/sub/two empty >result.txt
mkdir -p out/deep
cp big out/deep/big
echo hello >out/hello
echo log >a.log
echo home >here
: >none`)
	p.awaitSuccess(t, "all")
	for i, part := range []string{"zero", "one"} {
		at := fmt.Sprint(i) + "/"
		server.want("results", at+"result.txt", "1,2,3\n"+part+"12")
		server.want("results", at+"out/deep/big", big)
		server.want("results", at+"out/hello", "hello\n")
		server.want("results", at+"logs/a.log", "log\n")
		server.want("results", at+"none", "")
		if text, err := os.ReadFile(p.home + "/here-" + fmt.Sprint(i)); string(text) != "home\n" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	p.checkManifest("0/out/")
	p.submit("again", "  inputs = { \"in\" = \"s3://results/0/out/\" }\n  outputs = { \"n\" = \"s3://results/n\" }",
		"find in -type f | sort >n; wc -c <in/deep/big >>n")
	p.awaitSuccess(t, "again")
	server.want("results", "n", "in/deep/big\nin/hello\n3145728\n")
	if left := server.openUploads("results"); len(left) > 0 {
		t.Errorf("there are uploads of %q", left)
	}
	p.searchSecrets()
}

// checkManifest checks the manifest of a directory.
func (p *objectPool) checkManifest(dir string) {
	p.t.Helper()
	text, _ := p.server.get("results", dir+".roost-manifest.json")
	var m struct {
		Attempt int
		Files   []struct {
			Name, SHA256 string
			Size         int64
		}
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Attempt != 1 || len(m.Files) != 2 {
		p.t.Fatalf("the manifest is %q: %v", text, err)
	}
	for _, f := range m.Files {
		data, _ := p.server.get("results", dir+f.Name)
		if sum := sha256.Sum256([]byte(data)); hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(data)) != f.Size {
			p.t.Errorf("%s has %d bytes, and the manifest says %+v", f.Name, len(data), f)
		}
	}
}

// searchSecrets looks for keys and presigned addresses in all that the pool has written
// and prints.
func (p *objectPool) searchSecrets() {
	p.t.Helper()
	p.server.mu.Lock()
	needles := append([]string{objectSecretKey, objectKeyID, "X-Amz-"}, p.server.signature...)
	p.server.mu.Unlock()
	if len(needles) < 10 {
		p.t.Errorf("there were only %d presigned requests", len(needles)-3)
	}
	search := func(where string, text []byte) {
		for _, n := range needles {
			for _, form := range []string{n, url.QueryEscape(n)} {
				if bytes.Contains(text, []byte(form)) {
					p.t.Errorf("%s has %.20s…", where, n)
				}
			}
		}
	}
	files := 0
	filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, err := os.ReadFile(path); err == nil {
				search(path, text)
				files++
			}
		}
		return nil
	})
	if files < 10 {
		p.t.Errorf("only %d files were searched", files)
	}
	search("the output of the daemons", []byte(p.Output()))
	for _, command := range [][]string{{"history", "--json"}, {"jobs", "--json", "--all"}, {"ads", "machine"},
		{"show", "1", "--json"}, {"why", "1"}, {"tracejob", "1"}} {
		stdout, stderr, _ := p.Command(p.t.Context(), command...)
		search("roost "+strings.Join(command, " "), []byte(stdout+stderr))
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, dir := range processes {
		for _, name := range []string{"/cmdline", "/environ"} {
			if text, err := os.ReadFile(dir + name); err == nil && !slices.Contains([]string{fmt.Sprint(os.Getpid())},
				filepath.Base(dir)) {
				search(dir+name, text)
			}
		}
	}
}

// TestObjectRefusals has jobs whose objects cannot be had. Each is held before its task
// starts, with what the object store said and what to do.
func TestObjectRefusals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	server := newObjectServer(t, "data")
	server.put("data", "there", "text")
	p := newObjectPool(t, server)
	started := filepath.Join(p.home, "started")
	run := func(name, settings string) string { return p.submit(name, settings, "touch "+started) }
	p.awaitHeld(run("key", `  inputs = ["s3://data/missing"]`), "no such object", server.URL, "bucket data",
		"key missing", "404", "release the task")
	p.awaitHeld(run("bucket", `  inputs = ["s3://nowhere/x"]`), "no such bucket", "NoSuchBucket")
	p.awaitHeld(run("prefix", `  inputs = ["s3://data/nothing/"]`), "no key begins so")
	p.awaitHeld(run("out", `  outputs = { "x" = "s3://nowhere/x" }`), "no such bucket")
	server.setFault(func(r *http.Request) (int, string) { return http.StatusForbidden, "AccessDenied" })
	p.awaitHeld(run("forbidden", `  inputs = ["s3://data/there"]`), "your keys do not allow it", "403",
		"roost secret set s3")
	server.setFault(nil)
	p.setKeys("aws_access_key_id = AKIASTRANGER\naws_secret_access_key = x\n")
	id := run("stranger", `  inputs = ["s3://data/there"]`)
	p.awaitOutput(t, "your keys do not allow it", "why", id)
	if _, err := os.Stat(started); err == nil {
		t.Error("a task has started without its objects")
	}
	p.setKeys(goodKeys)
	p.mustRun(t, "release", id)
	p.awaitSuccess(t, "stranger")
}

// TestObjectFaults has an object store that cuts answers off, fails, asks for fewer
// requests and lets addresses expire.
func TestObjectFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	server := newObjectServer(t, "data", "results")
	server.put("data", "x", "input\n")
	p := newObjectPool(t, server)
	var mu sync.Mutex
	seen := map[string]int{}
	server.setFault(func(r *http.Request) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		kind := r.Method
		if r.URL.Query().Get("X-Amz-Signature") != "" {
			kind = "presigned " + r.Method
		}
		seen[kind]++
		switch {
		case seen[kind] == 1:
			return http.StatusInternalServerError, "InternalError"
		case seen[kind] == 2 && strings.HasPrefix(kind, "presigned"):
			return http.StatusForbidden, "AccessDenied" // as for an address that has expired
		case seen[kind] == 3 && strings.HasPrefix(kind, "presigned"):
			return http.StatusServiceUnavailable, "SlowDown"
		case seen[kind] == 2 && kind == http.MethodPost:
			return http.StatusServiceUnavailable, "SlowDown"
		}
		return 0, ""
	})
	p.submit("faults", "  inputs = [\"s3://data/x\"]\n  outputs = { \"x\" = \"s3://results/x\" }", "echo output >>x")
	p.awaitSuccess(t, "faults")
	server.want("results", "x", "input\noutput\n")
	mu.Lock()
	defer mu.Unlock()
	for _, kind := range []string{"presigned GET", "presigned PUT", http.MethodPost, http.MethodHead} {
		if seen[kind] < 2 {
			t.Errorf("there were %d requests %s", seen[kind], kind)
		}
	}
}
