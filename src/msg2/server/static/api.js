// The JSON API of the app; what it refuses is thrown, with its `problem`.

async function parseResponse(response) {
  if (response.status === 204) return null;
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.error), { problem: body, status: response.status });
  return body;
}

/** A file that is downloaded, as text. */
export async function getText(path) {
  const response = await fetch(`/api/${path}`);
  return response.ok ? response.text() : parseResponse(response);
}

export const get = async (path) => parseResponse(await fetch(`/api/${path}`));

const send = (method, options = {}) => async (path, value) =>
  parseResponse(
    await fetch(`/api/${path}`, {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(value),
      ...options,
    }),
  );

export const post = send("POST");
export const patch = send("PATCH");

/** Goes on where the page is left meanwhile. */
export const put = send("PUT", { keepalive: true });

/** A name that no other event or save has; `crypto.randomUUID` is not there without TLS. */
export const newId = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

export const remove = async (path) => parseResponse(await fetch(`/api/${path}`, { method: "DELETE" }));

/** Send a file as it is, as "data", only for a "preview", or as a "given" graph; `reading` says how data is to be read. */
export async function upload(path, file, reading = {}) {
  const query = new URLSearchParams({ name: file.name, ...reading });
  const headers = { "Content-Type": "application/octet-stream" };
  return parseResponse(await fetch(`/api/${path}?${query}`, { method: "POST", headers, body: file }));
}
