package accountingtest

import "net/url"

// Unescape reads what linetext wrote, as another program would: it undoes the escapes of
// URLs.
func Unescape(text string) (string, error) { return url.PathUnescape(text) }
