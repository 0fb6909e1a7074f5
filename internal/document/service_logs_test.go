package document

import "testing"

// TestServiceLogsOf checks what is shown of the output that a service keeps.
func TestServiceLogsOf(t *testing.T) {
	for ad, want := range map[string]string{
		"[ Service = [ ] ]": "at most 50MiB of a stream; of earlier attempts for 7d00h",
		"[ Service = [ ]; Logs = [ Size = 1048576; Files = 3; Retain = 3600.0 ] ]": "at most 3MiB of a stream; of " +
			"earlier attempts for 1h00m",
		"[ Logs = [ Files = 3 ] ]":                    "",
		"[ Service = [ ]; Logs = [ Files = 1 ] ]":     "",
		"[ Service = [ ]; Logs = [ Retain = -1.0 ] ]": "",
		"[ Service = [ ]; Logs = 3 ]":                 "",
		"[":                                           "",
	} {
		got := ""
		if l := ServiceLogsOf(ad); l != nil {
			got = l.Text()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", ad, got, want)
		}
	}
}
