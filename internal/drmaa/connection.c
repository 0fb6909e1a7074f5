/*
 * The connection to a pool: a process "roost api" of this user at the other end of a pair
 * of sockets. It is started with the first call, and anew if it has ended.
 *
 * A thread reads the answers. Requests are written without library_lock: the thread
 * needs it to read on, and roost api may read no further before its answers are read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "roost_drmaa.h"

#define MOST_CALLS 200 /* at once; roost api runs 256 */
#define GREETING_MS 60000
#define ATTEMPTS 4

extern char **environ;

pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t library_changed;

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	bool up, has_reader;
	int fd; /* changes under write_lock, too */
	unsigned long epoch, next_id;
	pthread_t reader;
	char *pool;
	struct call *calls;
	unsigned running;
} connection = {.fd = -1};

static void lock_before_fork(void)
{
	pthread_mutex_lock(&library_lock);
	pthread_mutex_lock(&write_lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&write_lock);
	pthread_mutex_unlock(&library_lock);
}

static void unlock_in_child(void)
{
	connection_forget();
	unlock_after_fork();
}

static void set_up(void)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&library_changed, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_atfork(lock_before_fork, unlock_after_fork, unlock_in_child);
}

void library_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, set_up);
}

/* connection_forget leaves session and connection to the parent of this process. */
void connection_forget(void)
{
	if (connection.fd >= 0)
		close(connection.fd);
	connection.fd = -1;
	connection.up = connection.has_reader = false;
	connection.calls = NULL;
	connection.running = 0;
	connection.epoch++;
	if (session.journal >= 0)
		close(session.journal);
	session = (struct session){.journal = -1};
	pthread_condattr_t attributes; /* the other threads that waited are gone */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&library_changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int connection_configure(const char *pool, struct diagnosis d)
{
	char *copy = NULL;
	if (pool != NULL && (copy = strdup(pool)) == NULL)
		return fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	free(connection.pool);
	connection.pool = copy;
	return DRMAA_ERRNO_SUCCESS;
}

/* beside returns a path of roost near this library: in its directory, or in bin beside
 * that. */
static bool beside(char *path, size_t room)
{
	Dl_info info;
	if (dladdr((void *)beside, &info) == 0 || info.dli_fname == NULL)
		return false;
	const char *end = strrchr(info.dli_fname, '/');
	if (end == NULL)
		return false;
	static const char *const places[] = {"roost", "../bin/roost", "../../bin/roost"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(path, room, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, places[i]);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* find_program finds roost: $ROOST_PROGRAM, along PATH, beside the library, or in the
 * usual places. */
static bool find_program(char *path, size_t room)
{
	const char *named = getenv("ROOST_PROGRAM"), *where = getenv("PATH");
	if (named != NULL && *named) {
		snprintf(path, room, "%s", named);
		return access(path, X_OK) == 0;
	}
	for (const char *p = where ? where : ""; *p;) {
		size_t size = strcspn(p, ":");
		snprintf(path, room, "%.*s/roost", (int)size, p);
		if (size > 0 && access(path, X_OK) == 0)
			return true;
		p += size + (p[size] == ':');
	}
	if (beside(path, room))
		return true;
	static const char *const usual[] = {"/usr/local/bin/roost", "/usr/bin/roost"};
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		snprintf(path, room, "%s", usual[i]);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* pool_environment returns the environment, with the pool of the session in it. Both are
 * to be freed. */
static char **pool_environment(char **pool)
{
	size_t count = 0, n = 0;
	while (environ[count] != NULL)
		count++;
	char **environment = calloc(count + 2, sizeof *environment);
	if (environment == NULL || (connection.pool != NULL && asprintf(pool, "ROOST_DIR=%s", connection.pool) < 0)) {
		free(environment);
		*pool = NULL;
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (*pool == NULL || strncmp(environ[i], "ROOST_DIR=", 10) != 0)
			environment[n++] = environ[i];
	environment[n] = *pool;
	return environment;
}

/* spawn starts roost api with both streams at fd. A shell starts it and ends at once, so
 * that it is no child of this program, which may wait for all of its children. Signals of
 * the terminal do not reach it. */
static int spawn(const char *program, int fd)
{
	char *arguments[] = {"sh", "-c", "exec 3<&0; \"$0\" \"$@\" <&3 3<&- &", (char *)program, "api", NULL}, *pool = NULL;
	char **environment = pool_environment(&pool);
	if (environment == NULL)
		return ENOMEM;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fd, 0);
	posix_spawn_file_actions_adddup2(&files, fd, 1);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	pid_t shell;
	int error = posix_spawn(&shell, "/bin/sh", &files, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	free(environment);
	free(pool);
	if (error == 0)
		while (waitpid(shell, NULL, 0) < 0 && errno == EINTR)
			;
	return error;
}

/* read_line reads the first line, a byte at a time: what follows is the thread's. */
static bool read_line(int fd, char *line, size_t room)
{
	for (size_t n = 0; n + 1 < room; n++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int ready;
		while ((ready = poll(&p, 1, GREETING_MS)) < 0 && errno == EINTR)
			;
		if (ready <= 0 || recv(fd, line + n, 1, 0) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = 0;
			return true;
		}
	}
	return false;
}

static struct call *find_call(const char *id)
{
	unsigned long number = strtoul(id, NULL, 10);
	for (struct call *c = connection.calls; c != NULL; c = c->next)
		if (c->id == number)
			return c;
	return NULL;
}

/* add_base64 adds output that is no text. */
static void add_base64(struct text *t, const char *s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned value = 0;
	int bits = 0;
	for (; *s && *s != '='; s++) {
		const char *digit = strchr(digits, *s);
		if (digit == NULL)
			continue;
		value = value << 6 | (unsigned)(digit - digits);
		if ((bits += 6) >= 8) {
			char byte = (char)(value >> (bits -= 8));
			text_add_bytes(t, &byte, 1);
		}
	}
}

/* accept_answer gives a line of roost api to its call. */
static void accept_answer(const char *line, size_t size)
{
	struct json *answer = json_parse(line, size);
	pthread_mutex_lock(&library_lock);
	struct call *c = find_call(json_text(answer, "id"));
	if (c != NULL) {
		c->answers++;
		text_add(&c->output, json_text(answer, "out"));
		add_base64(&c->output, json_text(answer, "bytes"));
		if (json_member(answer, "exit") != NULL) {
			c->status = (int)json_number(answer, "exit");
			text_add(&c->error, json_text(answer, "error"));
			c->done = true;
		}
		pthread_cond_broadcast(&library_changed);
	}
	pthread_mutex_unlock(&library_lock);
	json_free(answer);
}

static void *read_answers(void *argument)
{
	int fd = *(int *)argument;
	free(argument);
	struct text pending = {0};
	char part[65536];
	for (;;) {
		ssize_t n = recv(fd, part, sizeof part, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || pending.failed)
			break;
		text_add_bytes(&pending, part, (size_t)n);
		size_t begin = 0;
		char *end;
		while (!pending.failed && (end = memchr(pending.data + begin, '\n', pending.size - begin)) != NULL) {
			accept_answer(pending.data + begin, (size_t)(end - pending.data) - begin);
			begin = (size_t)(end - pending.data) + 1;
		}
		if (begin > 0) {
			memmove(pending.data, pending.data + begin, pending.size - begin);
			pending.size -= begin;
		}
	}
	text_free(&pending);
	shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&library_lock);
	for (struct call *c = connection.calls; c != NULL; c = c->next)
		if (!c->done) {
			c->done = c->lost = true;
			c->status = 69;
			text_add(&c->error, "roost api has ended");
		}
	connection.up = false;
	pthread_cond_broadcast(&library_changed);
	pthread_mutex_unlock(&library_lock);
	return NULL;
}

/* start_reader starts the thread, which handles no signals of the program. */
static bool start_reader(int fd)
{
	int *argument = malloc(sizeof *argument);
	if (argument == NULL)
		return false;
	*argument = fd;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&connection.reader, NULL, read_answers, argument) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!started)
		free(argument);
	return started;
}

/* drop_connection forgets a connection that is down. Its thread needs no lock any more. */
static void drop_connection(void)
{
	if (connection.has_reader)
		pthread_join(connection.reader, NULL);
	connection.has_reader = false;
	pthread_mutex_lock(&write_lock);
	if (connection.fd >= 0)
		close(connection.fd);
	connection.fd = -1;
	connection.epoch++;
	pthread_mutex_unlock(&write_lock);
}

/* ensure_connection makes a connection if there is none. library_lock is held. */
static int ensure_connection(struct diagnosis d)
{
	if (connection.up)
		return DRMAA_ERRNO_SUCCESS;
	drop_connection();
	char program[4096], line[1024];
	if (!find_program(program, sizeof program))
		return fail(d, DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE, "the program roost is not in PATH: is Roost installed on "
			"this machine? ROOST_PROGRAM may name it");
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(d, DRMAA_ERRNO_INTERNAL_ERROR, "socketpair: %s", strerror(errno));
	int error = spawn(program, pair[1]);
	close(pair[1]);
	if (error != 0 || !read_line(pair[0], line, sizeof line)) {
		close(pair[0]);
		return fail(d, DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE, "%s api does not answer%s%s", program,
			error ? ": " : "", error ? strerror(error) : "");
	}
	struct json *greeting = json_parse(line, strlen(line));
	int protocol = (int)json_number(greeting, "protocol");
	json_free(greeting);
	if (protocol != 1 || !start_reader(pair[0])) {
		close(pair[0]);
		return fail(d, DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE, "%s speaks protocol %d and this library 1: it belongs to "
			"another release", program, protocol);
	}
	connection.fd = pair[0];
	connection.up = connection.has_reader = true;
	return DRMAA_ERRNO_SUCCESS;
}

/* connection_close ends roost api. No call runs any more. */
void connection_close(void)
{
	pthread_mutex_lock(&library_lock);
	if (connection.fd >= 0)
		shutdown(connection.fd, SHUT_RDWR);
	while (connection.up)
		pthread_cond_wait(&library_changed, &library_lock);
	drop_connection();
	pthread_mutex_unlock(&library_lock);
}

/* send_request writes a line to the connection of an epoch. A broken one is noticed by
 * its thread. */
static void send_request(const struct text *line, unsigned long epoch)
{
	pthread_mutex_lock(&write_lock);
	if (epoch == connection.epoch) {
		for (size_t sent = 0; sent < line->size;) {
			ssize_t n = send(connection.fd, line->data + sent, line->size - sent, MSG_NOSIGNAL);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0) {
				shutdown(connection.fd, SHUT_RDWR);
				break;
			}
			sent += (size_t)n;
		}
	}
	pthread_mutex_unlock(&write_lock);
}

static void write_request(struct text *line, unsigned long id, const char *const *arguments, const char *input)
{
	char directory[4096];
	text_addf(line, "{\"v\":1,\"id\":\"%lu\",\"args\":[", id);
	for (size_t i = 0; arguments[i] != NULL; i++) {
		if (i > 0)
			text_add(line, ",");
		text_add_json(line, arguments[i]);
	}
	text_add(line, "]");
	if (input != NULL) {
		text_add(line, ",\"input\":");
		text_add_json(line, input);
	}
	if (getcwd(directory, sizeof directory) != NULL) {
		text_add(line, ",\"directory\":");
		text_add_json(line, directory);
	}
	text_add(line, "}\n");
}

struct call *call_start(const char *const *arguments, const char *input, int *number, struct diagnosis d)
{
	struct text line = {0};
	struct call *c = calloc(1, sizeof *c);
	if (c == NULL) {
		*number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
		return NULL;
	}
	pthread_mutex_lock(&library_lock);
	while (connection.running >= MOST_CALLS)
		pthread_cond_wait(&library_changed, &library_lock);
	if ((*number = ensure_connection(d)) != DRMAA_ERRNO_SUCCESS) {
		pthread_mutex_unlock(&library_lock);
		free(c);
		return NULL;
	}
	c->id = ++connection.next_id;
	c->next = connection.calls;
	connection.calls = c;
	connection.running++;
	unsigned long epoch = connection.epoch;
	pthread_mutex_unlock(&library_lock);
	write_request(&line, c->id, arguments, input);
	if (line.failed) {
		call_end(c);
		c = NULL;
		*number = fail(d, DRMAA_ERRNO_NO_MEMORY, NULL);
	} else {
		send_request(&line, epoch);
	}
	text_free(&line);
	return c;
}

void call_end(struct call *c)
{
	struct text line = {0};
	pthread_mutex_lock(&library_lock);
	for (struct call **p = &connection.calls; *p != NULL; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	connection.running--;
	pthread_cond_broadcast(&library_changed);
	bool runs = !c->done && connection.up;
	unsigned long epoch = connection.epoch;
	pthread_mutex_unlock(&library_lock);
	if (runs) {
		text_addf(&line, "{\"v\":1,\"id\":\"%lu\",\"cancel\":true}\n", c->id);
		if (!line.failed)
			send_request(&line, epoch);
		text_free(&line);
	}
	text_free(&c->output);
	text_free(&c->error);
	free(c);
}

int status_error(int status)
{
	switch (status) {
	case 35: /* the job has ended */
	case 68: /* there is no such job */
		return DRMAA_ERRNO_INVALID_JOB;
	case 69:
		return DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE;
	case 75:
		return DRMAA_ERRNO_TRY_LATER;
	case 77:
		return DRMAA_ERRNO_AUTH_FAILURE;
	case 65:
		return DRMAA_ERRNO_INVALID_ARGUMENT;
	}
	return DRMAA_ERRNO_INTERNAL_ERROR;
}

/* explain writes what a command wrote to standard error. */
static void explain(struct call *c, struct diagnosis d)
{
	const char *text = c->error.data != NULL ? c->error.data : "";
	if (strncmp(text, "roost: ", 7) == 0)
		text += 7;
	else if (strncmp(text, "qsub: ", 6) == 0)
		text += 6;
	if (*text)
		fail(d, 0, "%.*s", (int)strcspn(text, "\n"), text);
	else
		fail(d, 0, "roost ended with exit status %d", c->status);
}

struct json *call_document(const char *const *arguments, const char *input, int *status, struct diagnosis d)
{
	for (int attempt = 1;; attempt++) {
		int number;
		struct call *c = call_start(arguments, input, &number, d);
		if (c == NULL) {
			*status = number == DRMAA_ERRNO_NO_MEMORY ? 70 : 69;
			return NULL;
		}
		pthread_mutex_lock(&library_lock);
		while (!c->done)
			pthread_cond_wait(&library_changed, &library_lock);
		pthread_mutex_unlock(&library_lock);
		if (c->lost && attempt < ATTEMPTS) {
			call_end(c);
			continue;
		}
		struct json *document = c->output.failed ? NULL : json_parse(c->output.data, c->output.size);
		*status = c->status != 0 || document != NULL ? c->status : 70;
		if (document == NULL)
			explain(c, d);
		call_end(c);
		return document;
	}
}
