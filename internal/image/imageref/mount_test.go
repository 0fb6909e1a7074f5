package imageref

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

func TestParseMount(t *testing.T) {
	for text, want := range map[string]string{"/data": "/data:/data", "/data/": "/data:/data", "/a:/b": "/a:/b",
		"/a:/b:ro": "/a:/b:ro", "/a:ro": "/a:/a:ro", "/a:/b:rw": "/a:/b", "/:/host:ro": "/:/host:ro"} {
		m, err := ParseMount(text)
		if err != nil || m.String() != want {
			t.Errorf("%q: got %v, %v, want %s", text, m, err, want)
		}
		if again, err := ParseMount(m.String()); err != nil || again != m {
			t.Errorf("%q: read again it is %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "data", "/a:b", "/a/../b", "/a:/b/../c", "/a:/b:/c", "/a:/proc", "/a:/dev/null",
		"/a:/run/secrets/x", "/a\n", "/", "/a:/", "/a:/b:ro:rw", ":", ":ro"} {
		if _, err := ParseMount(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
	}
}
