// What Python puts before the SDK when it joins it with a plugin's files.
declare function readValue(path: string): { ok: boolean; value?: any; why?: string };
