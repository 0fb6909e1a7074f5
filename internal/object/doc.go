// Package object moves data between a machine and an object store by presigned URLs. It
// knows no keys: who has one of these URLs may make that one request.
//
// The naive way gives a machine one URL for each object. But a large transfer outlives
// its URL, and a URL that lives for days is a key that lies around. So a transfer has an
// [AddressSource], which it asks before each request, and after a connection that was cut
// off it asks again and goes on where it was:
//
//	Client ──ask──▶ AddressSource (the submit node, which has the keys)
//	   │   ◀─URL, good for minutes
//	   └──GET with a range, or PUT of a part──▶ object store
//
// No error of this package has a URL in it. [Backoff] has all requests to an object store
// wait that asks for fewer.
package object
