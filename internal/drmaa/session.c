/*
 * The session: which jobs were submitted in it, and which of them have ended and not been
 * waited for.
 *
 *	live ──the pool says so──▶ ended ──drmaa_wait──▶ reaped
 *	  └────the pool does not know it──▶ unknown
 *
 * A journal in the user's home has the ids, so that a later session with the same contact
 * string goes on with them: "+ID" a job, "-ID" one that was waited for. It is locked
 * while a session uses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "roost_drmaa.h"

struct session session = {.journal = -1};

int session_enter(struct diagnosis d)
{
	library_setup();
	pthread_mutex_lock(&library_lock);
	if (!session.active || session.closing) {
		pthread_mutex_unlock(&library_lock);
		return fail(d, DRMAA_ERRNO_NO_ACTIVE_SESSION, NULL);
	}
	session.users++;
	return DRMAA_ERRNO_SUCCESS;
}

void session_leave(void)
{
	session.users--;
	pthread_cond_broadcast(&library_changed);
	pthread_mutex_unlock(&library_lock);
}

static size_t slot_of(const char *id)
{
	size_t hash = 14695981039346656037u;
	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 1099511628211u;
	return hash & (session.slots - 1);
}

struct job *session_find(const char *id)
{
	if (session.slots == 0)
		return NULL;
	for (struct job *j = session.table[slot_of(id)]; j != NULL; j = j->chain)
		if (strcmp(j->id, id) == 0)
			return j;
	return NULL;
}

/* make_room makes room for one more job. */
static bool make_room(void)
{
	if (session.count == session.room) {
		size_t room = session.room * 2 + 64;
		struct job **jobs = realloc(session.jobs, room * sizeof *jobs);
		if (jobs == NULL)
			return false;
		session.jobs = jobs;
		session.room = room;
	}
	if (session.count < session.slots)
		return true;
	size_t slots = session.slots ? session.slots * 2 : 256;
	struct job **table = calloc(slots, sizeof *table);
	if (table == NULL)
		return session.slots > 0; /* it is only slower */
	free(session.table);
	session.table = table;
	session.slots = slots;
	for (size_t i = 0; i < session.count; i++) {
		struct job **slot = &session.table[slot_of(session.jobs[i]->id)];
		session.jobs[i]->chain = *slot;
		*slot = session.jobs[i];
	}
	return true;
}

struct job *session_add(const char *id, bool ours)
{
	struct job *j = session_find(id);
	if (j != NULL) {
		j->ours = j->ours || ours;
		return j;
	}
	if (!make_room() || (j = calloc(1, sizeof *j)) == NULL)
		return NULL;
	if ((j->id = strdup(id)) == NULL) {
		free(j);
		return NULL;
	}
	j->parent_size = strcspn(id, "[.");
	j->ours = ours;
	struct job **slot = &session.table[slot_of(id)];
	j->chain = *slot;
	*slot = j;
	session.jobs[session.count++] = j;
	session.live++;
	session.generation++;
	pthread_cond_broadcast(&library_changed);
	return j;
}

static void free_job(struct job *j)
{
	list_free(&j->usage);
	free(j->id);
	free(j);
}

/* write_all writes a text. What cannot be written is missing in a later session. */
static void write_all(int fd, const struct text *t)
{
	for (size_t written = 0; !t->failed && written < t->size;) {
		ssize_t n = write(fd, t->data + written, t->size - written);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		written += (size_t)n;
	}
}

void session_record(char sign, const struct list *ids)
{
	struct text t = {0};
	if (session.journal < 0)
		return;
	for (size_t i = 0; i < ids->count; i++)
		text_addf(&t, "%c%s\n", sign, ids->items[i]);
	write_all(session.journal, &t);
	text_free(&t);
}

void session_end_job(struct job *j, int state, int stat, struct list *usage)
{
	if (j->phase != PHASE_LIVE)
		return;
	j->phase = PHASE_ENDED;
	j->state = state;
	j->stat = stat;
	if (usage != NULL) {
		j->usage = *usage;
		*usage = (struct list){0};
	}
	session.live--;
	if (j->ours) {
		j->ended_before = session.last_ended;
		if (session.last_ended != NULL)
			session.last_ended->ended_after = j;
		else
			session.first_ended = j;
		session.last_ended = j;
	}
}

void session_reap(struct job *j)
{
	if (j->phase == PHASE_ENDED && j->ours) {
		if (j->ended_before != NULL)
			j->ended_before->ended_after = j->ended_after;
		else
			session.first_ended = j->ended_after;
		if (j->ended_after != NULL)
			j->ended_after->ended_before = j->ended_before;
		else
			session.last_ended = j->ended_before;
		struct list one = {.items = &j->id, .count = 1};
		session_record('-', &one);
	}
	j->ended_before = j->ended_after = NULL;
	j->phase = PHASE_REAPED;
	list_free(&j->usage);
}

/* state_directory returns where journals are, and makes it. */
static bool state_directory(char *path, size_t room)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state != NULL && state[0] == '/')
		snprintf(path, room, "%s/roost/drmaa", state);
	else if (home != NULL && home[0] == '/')
		snprintf(path, room, "%s/.local/state/roost/drmaa", home);
	else
		return false;
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(path, 0700);
			*p = '/';
		}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* read_journal takes over the jobs of a journal. */
static bool read_journal(int fd)
{
	int copy = dup(fd);
	FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
	if (file == NULL) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	char line[512];
	bool read = true;
	while (read && fgets(line, sizeof line, file) != NULL) {
		size_t size = strcspn(line, "\n");
		if (line[size] != '\n' || size < 2 || line[1] < '0' || line[1] > '9')
			continue; /* a line that was not written to its end */
		line[size] = 0;
		struct job *j = line[0] == '+' ? session_add(line + 1, true) : session_find(line + 1);
		read = line[0] != '+' || j != NULL;
		if (line[0] == '-' && j != NULL && j->phase == PHASE_LIVE) {
			session.live--;
			session_reap(j);
		}
	}
	fclose(file);
	return read;
}

/* open_journal opens the journal and locks it. Without a home the session has none. */
static int open_journal(struct diagnosis d)
{
	char path[PATH_MAX];
	if (!state_directory(path, sizeof path - 256))
		return DRMAA_ERRNO_SUCCESS;
	strcat(path, "/");
	strcat(path, session.name);
	int fd;
	for (struct stat mine, named;; close(fd)) {
		fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return DRMAA_ERRNO_SUCCESS;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			return fail(d, DRMAA_ERRNO_ALREADY_ACTIVE_SESSION, "another process uses the session %s", session.name);
		}
		if (fstat(fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_ino == named.st_ino)
			break; /* else another session has just left a new file behind */
	}
	session.journal = fd;
	session.file = strdup(path);
	if (session.file == NULL || !read_journal(fd))
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	return DRMAA_ERRNO_SUCCESS;
}

/* take_field takes the value of a field of a contact string. */
static bool take_field(const char *field, size_t size, const char *name, char **value)
{
	size_t n = strlen(name);
	if (size <= n || strncmp(field, name, n) != 0 || *value != NULL)
		return false;
	*value = strndup(field + n, size - n);
	return *value != NULL;
}

static bool valid_name(const char *name)
{
	return strlen(name) <= 128 && name[0] != '.' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == 0;
}

/* parse_contact reads "session=NAME;pool=DIR"; each part may be missing. */
static int parse_contact(const char *contact, struct diagnosis d)
{
	for (const char *p = contact ? contact : ""; *p;) {
		size_t size = strcspn(p, ";");
		if (size > 0 && !take_field(p, size, "session=", &session.name) && !take_field(p, size, "pool=", &session.pool))
			return fail(d, DRMAA_ERRNO_INVALID_CONTACT_STRING, "\"%s\" is not of the form session=NAME;pool=DIRECTORY",
				contact);
		p += size + (p[size] == ';');
	}
	if (session.name != NULL && !valid_name(session.name))
		return fail(d, DRMAA_ERRNO_INVALID_CONTACT_STRING, "\"%s\" is no name of a session: it has at most 128 letters, "
			"digits, and any of _ . -", session.name);
	if (session.pool != NULL && strcmp(session.pool, "default") == 0) {
		free(session.pool);
		session.pool = NULL;
	} else if (session.pool == NULL && getenv("ROOST_DIR") != NULL && *getenv("ROOST_DIR")) {
		if ((session.pool = realpath(getenv("ROOST_DIR"), NULL)) == NULL)
			session.pool = strdup(getenv("ROOST_DIR"));
		if (session.pool == NULL)
			return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	}
	if (session.name == NULL) {
		char host[64] = "";
		struct timespec now;
		gethostname(host, sizeof host - 1);
		host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] = 0;
		clock_gettime(CLOCK_REALTIME, &now);
		if (asprintf(&session.name, "%s-%ld-%lld.%03ld", host[0] ? host : "session", (long)getpid(), (long long)now.tv_sec,
			now.tv_nsec / 1000000) < 0) {
			session.name = NULL;
			return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
		}
	}
	return DRMAA_ERRNO_SUCCESS;
}

/* session_open makes the session of a contact string. library_lock is held. */
bool session_open(const char *contact, int *number, struct diagnosis d)
{
	session = (struct session){.journal = -1};
	if ((*number = parse_contact(contact, d)) != DRMAA_ERRNO_SUCCESS ||
		(*number = open_journal(d)) != DRMAA_ERRNO_SUCCESS ||
		(*number = connection_configure(session.pool, d)) != DRMAA_ERRNO_SUCCESS) {
		session_close();
		return false;
	}
	return true;
}

/* leave_journal removes the journal of a session without jobs, and else leaves the ids of
 * those that were not waited for. */
static void leave_journal(void)
{
	struct text t = {0};
	for (size_t i = 0; i < session.count; i++)
		if (session.jobs[i]->ours && (session.jobs[i]->phase == PHASE_LIVE || session.jobs[i]->phase == PHASE_ENDED))
			text_addf(&t, "+%s\n", session.jobs[i]->id);
	if (t.size == 0 && !t.failed && session.file != NULL) {
		unlink(session.file);
	} else if (!t.failed && session.file != NULL) {
		char *fresh = NULL;
		int fd = asprintf(&fresh, "%s.new", session.file) < 0 ? -1 :
			open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0) {
			struct stat written;
			write_all(fd, &t);
			if (fstat(fd, &written) == 0 && (size_t)written.st_size == t.size)
				rename(fresh, session.file);
			else
				unlink(fresh);
			close(fd);
		}
		free(fresh);
	}
	text_free(&t);
}

/* session_close forgets the session. library_lock is held, and nobody uses it. */
void session_close(void)
{
	if (session.journal >= 0) {
		leave_journal();
		close(session.journal);
	}
	for (size_t i = 0; i < session.count; i++)
		free_job(session.jobs[i]);
	free(session.jobs);
	free(session.table);
	free(session.name);
	free(session.pool);
	free(session.file);
	session = (struct session){.journal = -1};
}

int drmaa_init(const char *contact, char *error_diagnosis, size_t error_diag_len)
{
	int number, status;
	library_setup();
	pthread_mutex_lock(&library_lock);
	if (session.active) {
		pthread_mutex_unlock(&library_lock);
		return fail(DIAGNOSIS, DRMAA_ERRNO_ALREADY_ACTIVE_SESSION, NULL);
	}
	if (!session_open(contact, &number, DIAGNOSIS)) {
		pthread_mutex_unlock(&library_lock);
		return number;
	}
	session.active = session.closing = true; /* for others it begins below */
	pthread_mutex_unlock(&library_lock);
	static const char *const probe[] = {"jobs", "--json", "--here", "--limit", "1", NULL};
	struct json *answer = call_document(probe, NULL, &status, DIAGNOSIS);
	bool answered = answer != NULL && status == 0;
	json_free(answer);
	if (!answered)
		connection_close();
	pthread_mutex_lock(&library_lock);
	if (!answered) {
		session_close();
		number = status_error(status);
		if (number == DRMAA_ERRNO_INTERNAL_ERROR || number == DRMAA_ERRNO_INVALID_JOB)
			number = DRMAA_ERRNO_DRMS_INIT_FAILED;
	}
	session.closing = false;
	pthread_mutex_unlock(&library_lock);
	return number;
}

int drmaa_exit(char *error_diagnosis, size_t error_diag_len)
{
	library_setup();
	pthread_mutex_lock(&library_lock);
	if (!session.active || session.closing) {
		pthread_mutex_unlock(&library_lock);
		return fail(DIAGNOSIS, DRMAA_ERRNO_NO_ACTIVE_SESSION, NULL);
	}
	session.closing = true;
	pthread_cond_broadcast(&library_changed);
	while (session.users > 0)
		pthread_cond_wait(&library_changed, &library_lock);
	bool watching = session.watching;
	pthread_mutex_unlock(&library_lock);
	if (watching)
		pthread_join(session.watcher, NULL);
	connection_close();
	pthread_mutex_lock(&library_lock);
	session_close();
	pthread_mutex_unlock(&library_lock);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_contact(char *contact, size_t contact_len, char *error_diagnosis, size_t error_diag_len)
{
	if (contact == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	library_setup();
	struct text t = {0};
	pthread_mutex_lock(&library_lock);
	const char *pool = session.active ? session.pool : getenv("ROOST_DIR");
	if (session.active && session.name != NULL)
		text_addf(&t, "session=%s;", session.name);
	text_addf(&t, "pool=%s", pool != NULL && *pool ? pool : "default");
	pthread_mutex_unlock(&library_lock);
	if (t.failed)
		return fail(DIAGNOSIS, DRMAA_ERRNO_NO_MEMORY, NULL);
	copy_text(contact, contact_len, t.data);
	text_free(&t);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_version(unsigned int *major, unsigned int *minor, char *error_diagnosis, size_t error_diag_len)
{
	if (major == NULL || minor == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	*major = 1;
	*minor = 0;
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_DRM_system(char *drm_system, size_t drm_system_len, char *error_diagnosis, size_t error_diag_len)
{
	if (drm_system == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	copy_text(drm_system, drm_system_len, "Roost " ROOST_VERSION);
	return DRMAA_ERRNO_SUCCESS;
}

int drmaa_get_DRMAA_implementation(char *drmaa_impl, size_t drmaa_impl_len, char *error_diagnosis,
	size_t error_diag_len)
{
	if (drmaa_impl == NULL)
		return fail(DIAGNOSIS, DRMAA_ERRNO_INVALID_ARGUMENT, NULL);
	copy_text(drmaa_impl, drmaa_impl_len, "DRMAA 1.0 for Roost " ROOST_VERSION);
	return DRMAA_ERRNO_SUCCESS;
}
