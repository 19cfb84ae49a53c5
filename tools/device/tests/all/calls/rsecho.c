/* Plain sockets: the server sends back what comes. `rsecho server ADDRESS`, `rsecho client ADDRESS`. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH 100000

static char bytes[LENGTH], answer[LENGTH];

static int take(int from, char *into)
{
	int have = 0;
	ssize_t more;

	while (have < LENGTH && (more = recv(from, into + have, LENGTH - have, 0)) > 0)
		have += more;
	return have;
}

int main(int count, char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7777) };
	int to = socket(AF_INET, SOCK_STREAM, 0), from;

	if (count < 3 || to < 0)
		return 2;
	address.sin_addr.s_addr = inet_addr(words[2]);
	if (!strcmp(words[1], "server")) {
		if (bind(to, (void *)&address, sizeof(address)) || listen(to, 1) || (from = accept(to, NULL, NULL)) < 0) {
			perror("server");
			return 1;
		}
		printf("%d bytes have come\n", take(from, bytes));
		send(from, bytes, LENGTH, 0);
		recv(from, answer, 1, 0);
		shutdown(from, SHUT_RDWR);
		close(from);
		return 0;
	}
	for (int i = 0; i < LENGTH; i++)
		bytes[i] = i * 7;
	if (connect(to, (void *)&address, sizeof(address))) {
		perror("client");
		return 1;
	}
	send(to, bytes, LENGTH, 0);
	printf("%s %d bytes have come back\n", take(to, answer) == LENGTH && !memcmp(bytes, answer, LENGTH) ? "the same" : "not the same", LENGTH);
	shutdown(to, SHUT_RDWR);
	close(to);
	return 0;
}
