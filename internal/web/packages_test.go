package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
)

// TestPackagePages checks the list of packages and the page of one, in JSON and as pages.
func TestPackagePages(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	get := func(path string) string { return w.do(as(w.request("GET", path, ""), cookie)).Body.String() }
	var list view.PackageList
	text := get("/v1/packages")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Packages) != 1 || !list.More ||
		list.Packages[0].Labels["live"] != "1.4" || list.Size != 3<<20 || list.Blobs[0].Used == "" {
		t.Errorf("got %v, %s", err, text)
	}
	var one view.PackageDetail
	text = get("/v1/packages/web")
	if err := json.Unmarshal([]byte(text), &one); err != nil || one.Name != "web" || len(one.Versions) != 2 ||
		one.Versions[0].Version != "1.4" || one.Versions[0].Image.Workdir != "/srv" || one.Versions[1].Image != nil ||
		len(one.History) != 2 || one.History[0].To != "1.4" {
		t.Errorf("got %v, %s", err, text)
	}
	for path, wants := range map[string][]string{
		"/packages": {`href="/packages/web"`, "live (1.4)", "3MiB", `href="/packages?after=web"`, "sha256:0a"},
		"/packages/web": {"sha256:0b", "<td>live </td><td>image</td>", "<td></td><td>package</td>", "5MiB",
			"<td>1.3</td><td>1.4</td><td>bob</td>"},
	} {
		page := get(path)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %s: %s", path, want, page)
			}
		}
	}
	for _, path := range []string{"/v1/packages", "/v1/packages/web"} {
		if answer := w.do(w.request("GET", path, "")); answer.Code != 401 {
			t.Errorf("%s without a login: %d", path, answer.Code)
		}
	}
}
