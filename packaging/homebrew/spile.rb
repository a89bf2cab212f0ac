class Spile < Formula
  desc "Opens, converts, compares and repairs simulation and instrument files"
  homepage "https://example.org/spile"
  url "https://example.org/spile/spile-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"spile", "completions")
    system bin/"spile", "man", "man"
    man1.install Dir["man/*.1"]
  end

  test do
    system bin/"spile", "tour", "samples"
    assert_match "gsd", shell_output("#{bin}/spile info samples/trajectory.gsd")
  end
end
