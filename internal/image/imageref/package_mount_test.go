package imageref

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestParsePackageMount(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string]PackageMount{
		"web@live:/app":          {"web@live", "/app"},
		"web@1.4:/opt/a b/":      {"web@1.4", "/opt/a b"},
		digest + ":/app":         {digest, "/app"},
		"a@b:/x:/y":              {"a@b", "/x:/y"},
		"web@live:/procession":   {"web@live", "/procession"},
		"web@live:/home/ann/etc": {"web@live", "/home/ann/etc"},
	} {
		got, err := ParsePackageMount(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		if again, err := ParsePackageMount(got.String()); err != nil || again != got {
			t.Errorf("%q: read again it is %+v, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "web", "web@live", "web:/app", "web@live:app", "web@live:/", "web@live://",
		"web@live:/a/../etc", "web@live:/etc", "web@live:/etc/x", "web@live:/proc/self", "web@live:/dev",
		"web@live:/sys",
		"web@live:/tmp/x", "web@live:/run/x", "docker://x:/app", "oci:x:/app", "Web@live:/app", "web@live:/a\n",
		"web@live:/" + strings.Repeat("x", 1001)} {
		if _, err := ParsePackageMount(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
	}
	for other, want := range map[string]bool{"/app": false, "/app/x": false, "/application": true, "/b": true} {
		err := CheckPackageTargets([]PackageMount{{"a@b", "/app"}, {"c@d", other}})
		if (err == nil) != want {
			t.Errorf("beside /app is %s: %v", other, err)
		}
	}
}
